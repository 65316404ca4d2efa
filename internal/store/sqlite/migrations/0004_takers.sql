-- who took a post: the host and its process, so that what a dead process took is free again when its successor starts
ALTER TABLE posts ADD COLUMN taken_by TEXT NOT NULL DEFAULT '';
