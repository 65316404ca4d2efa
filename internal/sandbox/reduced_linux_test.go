package sandbox

import (
	"context"
	"testing"
)

func TestReducedBoxIsFound(t *testing.T) {
	box, rep, err := Detect(context.Background(), Config{Backend: "landlock", AllowReduced: true})
	t.Logf("%+v %v", rep, err)
	if err != nil || box.Name() != "landlock" {
		t.Fatal(err)
	}
}
