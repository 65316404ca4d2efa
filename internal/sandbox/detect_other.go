//go:build !linux && !darwin

package sandbox

import (
	"context"
	"runtime"
)

func detect(_ context.Context, _ Config) (Box, Report, error) { return detectNone(runtime.GOOS) }
