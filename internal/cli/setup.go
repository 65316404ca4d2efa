package cli

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"reasonix/internal/config"
)

//go:embed reasonix.example.toml
var exampleConfig []byte

const exampleEnv = `# Keys for models and platforms, one NAME=value a line. Only you can read this file.
# DEEPSEEK_API_KEY=
# OPENAI_API_KEY=
# SLACK_BOT_TOKEN=
# SLACK_SIGNING_SECRET=
# GITHUB_TOKEN=
# GITHUB_WEBHOOK_SECRET=
`

// paths are the user's configuration file and the saved keys.
func (a *app) paths() (configFile, envFile string, err error) {
	home, err := config.Home(a.getenv)
	if err != nil {
		return "", "", err
	}
	return filepath.Join(home, "config.toml"), filepath.Join(home, ".env"), nil
}

func (a *app) setupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "setup",
		Short: "Write a commented default configuration and the file for keys",
		Long:  "setup writes ~/.reasonix/config.toml and ~/.reasonix/.env (readable by you alone). What exists is left as it is.",
		Args:  exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			configFile, envFile, err := a.paths()
			if err != nil {
				return err
			}
			if err := a.writeNew(configFile, exampleFor(filepath.Dir(configFile)), 0o644); err != nil {
				return err
			}
			if err := a.writeNew(envFile, []byte(exampleEnv), 0o600); err != nil {
				return err
			}
			fmt.Fprintf(a.out, "\nNext: put a model key into %s, then run `reasonix doctor`.\n", envFile)
			return nil
		},
	}
}

// exampleFor keeps the host's state in home too, where that is not the usual place.
func exampleFor(home string) []byte {
	if home == config.ExpandHome("~/.reasonix") {
		return exampleConfig
	}
	bot := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(filepath.Join(home, "bot"))
	return bytes.ReplaceAll(exampleConfig, []byte("~/.reasonix/bot"), []byte(bot))
}

// writeNew creates a file that does not exist; an existing one keeps its content, and the file for keys its secrecy.
func (a *app) writeNew(path string, data []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("setup: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		fmt.Fprintf(a.out, "kept    %s\n", path)
		if mode == 0o600 {
			return os.Chmod(path, mode)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("setup: %w", err)
	}
	if _, err := f.Write(data); err != nil {
		f.Close()
		return fmt.Errorf("setup: write %s: %w", path, err)
	}
	fmt.Fprintf(a.out, "written %s\n", path)
	return f.Close()
}
