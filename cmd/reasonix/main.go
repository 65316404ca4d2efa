// Command reasonix is the one binary: the host, the headless run and the tools around them.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	_ "reasonix/adapters/console"
	_ "reasonix/adapters/github"
	_ "reasonix/adapters/slack"
	"reasonix/internal/cli"
	_ "reasonix/internal/provider/openai"
	_ "reasonix/internal/provider/script"
	_ "reasonix/internal/tool/builtin"
)

// version is set by the linker.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := cli.Main(ctx, version, os.Args[1:])
	stop()
	os.Exit(code)
}
