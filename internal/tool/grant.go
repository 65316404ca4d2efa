package tool

import "context"

type writesKey struct{}

// WithWrites lets one call write to further places: absolute files or folders that a person approved for exactly this call.
func WithWrites(ctx context.Context, paths []string) context.Context {
	return context.WithValue(ctx, writesKey{}, paths)
}

// Writes are the further places of the call that runs in ctx.
func Writes(ctx context.Context) []string {
	paths, _ := ctx.Value(writesKey{}).([]string)
	return paths
}
