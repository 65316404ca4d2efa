package sandbox

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The script that begins every box goes on only while the other end of its third descriptor, which a living bubblewrap holds, is open.
func TestInvariant08_ABoxWithoutAHostDoesNotPassTheGate(t *testing.T) {
	for _, alive := range []bool{true, false} {
		host, box, err := pair()
		if err != nil {
			t.Fatal(err)
		}
		if !alive {
			host.Close()
		}
		cmd := exec.Command("/bin/sh", "-c", gateScript+"echo through; ls /proc/self/fd | wc -l")
		cmd.ExtraFiles = []*os.File{box}
		out, err := cmd.Output()
		if passed := strings.HasPrefix(string(out), "through\n"); passed != alive || (err == nil) != alive {
			t.Errorf("a living host: %v; the box says %q, %v", alive, out, err)
		}
		host.Close()
		box.Close()
	}
}
