package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"reasonix/internal/agent"
	"reasonix/internal/run"
	"reasonix/internal/session"
	"reasonix/internal/workspace"
)

// noteLoss tells the model what of its workspace is not there any more.
func (b *bench) noteLoss(ctx context.Context, s *run.Spec) error {
	text, key := "", fmt.Sprintf("restored:%s:%d", b.t.ID, b.t.Attempts)
	worked, told, err := b.history(ctx, s.Session)
	if err != nil {
		return err
	}
	switch {
	case b.space.Restored && b.space.From.SHA != "":
		text = restoredWords(b.space.From, b.space.Dir)
	case b.space.Restored, b.space.Fresh:
		if worked {
			text = freshWords(b.space)
		}
	case told != "" && !strings.Contains(told, b.space.Dir):
		text, key = "The host: the workspace has moved. Its folder is "+b.space.Dir+" now.", "moved:"+b.space.Dir
	}
	if text != "" {
		s.Notes = append(s.Notes, agent.Steer{Key: key, Text: text})
	}
	return nil
}

func restoredWords(from workspace.Snapshot, dir string) string {
	return fmt.Sprintf("The host: the workspace was lost and is restored in %s from its snapshot of %s, with the branch, its commits and what was not "+
		"committed. Files that git ignores, other branches and the stash are gone, and so is what calls changed after that moment: look before you "+
		"rely on it. Configured setup commands have run again.", dir, from.At.UTC().Format(time.DateTime+" MST"))
}

// freshWords are for a workspace without any snapshot.
func freshWords(w *workspace.Workspace) string {
	if w.Pushed != "" {
		return fmt.Sprintf("The host: the earlier workspace was removed after its time. This is a new clone in %s, on the branch %s as it was pushed (commit %s). "+
			"What was not pushed, files that git ignores, other branches and the stash are gone. Configured setup commands have run again.", w.Dir, w.Branch, w.Pushed)
	}
	return fmt.Sprintf("The host: the earlier workspace is gone, and nothing of it was pushed or kept. This is a new clone in %s at commit %s: changes that "+
		"earlier calls made, ignored files, branches and the stash are not in it. Look before you rely on what was done before.", w.Dir, w.BaseSHA)
}

// history tells whether a call with effects was ever started in the session, and what the model was told about its folder first.
func (b *bench) history(ctx context.Context, log session.Log) (worked bool, told string, err error) {
	entries, err := log.Entries(ctx, 0)
	if err != nil {
		return false, "", fmt.Errorf("read the transcript: %w", err)
	}
	for _, e := range entries {
		switch {
		case e.Kind == session.KindIntent:
			worked = true
		case e.Kind == session.KindSystem && e.Message != nil:
			told = e.Message.Content
		}
	}
	return worked, told, nil
}
