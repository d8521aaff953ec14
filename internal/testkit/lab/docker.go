package lab

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// DockerEngine is a private container engine with one image in it.
type DockerEngine struct {
	Host  string // unix://…, for DOCKER_HOST
	Image string // a small Debian with bash, git and ripgrep
}

var docker struct {
	once    sync.Once
	err     error
	daemon  *daemon
	engine  DockerEngine
	version string
}

// Docker returns a private engine: own socket, data, network bridge and pid file,
// nothing shared with an engine of the machine. One serves a whole test binary.
// Tests share it, so they name and label what they make.
func Docker(t testing.TB) DockerEngine {
	t.Helper()
	docker.once.Do(func() { docker.err = startDocker() })
	Need(t, "dockerd", docker.err)
	use(t, "dockerd", docker.version)
	return docker.engine
}

func startDocker() error {
	if os.Geteuid() != 0 {
		return errors.New("a private dockerd needs root")
	}
	dockerd, err := command("dockerd", "docker.io")
	if err != nil {
		return err
	}
	cli, err := command("docker", "docker.io")
	if err != nil {
		return err
	}
	base, err := cached("image-*/base.tar", "image")
	if err != nil {
		return err
	}
	if docker.version, err = versionOf(dockerd, "--version"); err != nil {
		return err
	}
	docker.daemon, err = launch("docker", func(dir string) ([]string, error) { return dockerCommand(dockerd, dir) },
		func(dir string) error { return exec.Command(cli, "--host", dockerHost(dir), "info").Run() })
	if err != nil {
		return err
	}
	docker.engine = DockerEngine{Host: dockerHost(docker.daemon.dir), Image: "thole-lab/base:latest"}
	out, err := exec.Command(cli, "--host", docker.engine.Host, "import", base, docker.engine.Image).CombinedOutput()
	if err != nil {
		return fmt.Errorf("import base image: %w: %s", err, out)
	}
	return nil
}

func dockerHost(dir string) string { return "unix://" + filepath.Join(dir, "docker.sock") }

// dockerCommand gives the engine a bridge and address ranges of its own: engines
// that share docker0 hand out the same addresses twice. It gets no iptables rules,
// so containers reach the host and each other but not the network beyond.
func dockerCommand(dockerd, dir string) ([]string, error) {
	ip, err := command("ip", "iproute2")
	if err != nil {
		return nil, err
	}
	bridge, n, err := makeBridge(ip)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "bridge"), []byte(bridge), 0o600); err != nil {
		return nil, err
	}
	return []string{
		dockerd, "--host", dockerHost(dir), "--pidfile", filepath.Join(dir, "docker.pid"),
		"--data-root", filepath.Join(dir, "data"), "--exec-root", filepath.Join(dir, "exec"),
		"--bridge", bridge, "--iptables=false", "--ip-forward=false", "--ip-masq=false",
		"--default-address-pool", fmt.Sprintf("base=10.218.%d.0/24,size=28", n), "--log-level", "warn",
	}, nil
}

func makeBridge(ip string) (name string, n int, err error) {
	for n = range 250 {
		name = fmt.Sprintf("tholelab%d", n)
		if _, err := net.InterfaceByName(name); err == nil {
			continue
		}
		out, err := exec.Command(ip, "link", "add", name, "type", "bridge").CombinedOutput()
		if err != nil {
			if strings.Contains(string(out), "File exists") {
				continue // another test binary was faster
			}
			return "", 0, fmt.Errorf("make network bridge: %w: %s", err, out)
		}
		for _, args := range [][]string{{"addr", "add", fmt.Sprintf("10.217.%d.1/24", n), "dev", name}, {"link", "set", name, "up"}} {
			if out, err := exec.Command(ip, args...).CombinedOutput(); err != nil {
				_ = exec.Command(ip, "link", "delete", name).Run()
				return "", 0, fmt.Errorf("set up network bridge: %w: %s", err, out)
			}
		}
		return name, n, nil
	}
	return "", 0, errors.New("250 lab bridges exist already; remove them with ip link delete")
}
