package sandbox

import (
	"testing"

	"go.uber.org/goleak"
)

// Whatever a command leaves running, no descriptor, goroutine, mount or process of a reduced box stays.
func TestReducedBoxesLeaveNothingBehind(t *testing.T) {
	r := newRoom(t)
	r.repository()
	r.must("true")
	fds, mounts := count("/proc/self/fd"), read(t, "/proc/self/mountinfo")
	for range 25 {
		r.must("echo x > x; (setsid sleep 100 &) ; sleep 100 & true")
	}
	if n := count("/proc/self/fd"); n > fds {
		t.Errorf("descriptors: %d, were %d", n, fds)
	}
	goleak.VerifyNone(t)
	if read(t, "/proc/self/mountinfo") != mounts {
		t.Error("mounts changed")
	}
	if left := processesWith("HOME=" + r.policy.Home); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}
