package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"reasonix/internal/config"
	"reasonix/internal/workspace"
)

func (a *app) exportWorkspace(ctx context.Context, k keeper, id, file string, whole bool) error {
	err := k.spaces.Export(ctx, id, file, whole)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w; name a file that does not exist", err)
	}
	if err != nil {
		return mendWorkspace(err)
	}
	fmt.Fprintf(a.out, "Written to %s. It holds the task's work: keep it as private as the repository.\n", file)
	return nil
}

func (a *app) importWorkspace(ctx context.Context, k keeper, file string) error {
	of, err := workspace.Described(file)
	if err != nil {
		return err
	}
	shop, err := k.shop()
	if err != nil {
		return err
	}
	repo, err := shop.repo(of.Repo)
	if err != nil {
		return fmt.Errorf("the export is of the repository %q, which is not under [[repos]] here: add it, then import again", of.Repo)
	}
	got, err := k.spaces.Import(ctx, file, workspace.Request{URL: config.ExpandHome(repo.URL), Credential: shop.credential(repo)})
	if err != nil {
		return mendWorkspace(err)
	}
	fmt.Fprintf(a.out, "%s is here, with %d snapshots of %s on %s. Its task goes on where this host holds it; `reasonix bot workspace restore %s FOLDER` writes its files.\n",
		got.ID, got.Snapshots, got.Repo, got.Branch, got.ID)
	return nil
}
