package system

import (
	"context"
	"net"
	"net/http"
	"net/url"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/jsonhttp"
	"github.com/tholehq/thole/internal/platform/peer"
	"github.com/tholehq/thole/internal/roster"
)

// executorsPath is where other servers find the executors of this machine. The home's socket
// does not have it: their tokens are for servers alone.
const executorsPath = homePath + "/executors/"

// runningThere is what a server says to another of an executor that runs on its machine.
type runningThere struct {
	Token string `json:"token"`
}

// executors serves executors of this machine to other servers, which have decided who may use
// them and for what: one that runs is described, and connections to it are joined.
func (p *peers) executors(mux *http.ServeMux, driver executor.Driver) {
	running := func(r *http.Request) (executor.Info, error) {
		info, err := driver.Inspect(r.Context(), thole.ExecutorID(r.PathValue("executor")))
		if err == nil && info.State != executor.Running {
			err = thole.Errorf(thole.CodeGone, "executor %s does not run", r.PathValue("executor"))
		}
		return info, err
	}
	mux.HandleFunc("GET "+executorsPath+"{executor}", func(w http.ResponseWriter, r *http.Request) {
		info, err := running(r)
		if err != nil {
			jsonhttp.Error(w, err)
			return
		}
		jsonhttp.Write(w, http.StatusOK, runningThere{info.Token})
	})
	mux.HandleFunc("GET "+executorsPath+"{executor}/connection", func(w http.ResponseWriter, r *http.Request) {
		peer.Join(w, r, func(ctx context.Context) (net.Conn, error) {
			info, err := running(r)
			if err != nil {
				return nil, err
			}
			return executorclient.Dial(info.Endpoint, info.Token).Connect(ctx)
		})
	})
}

// executor is executors.Config.Elsewhere. That a server does not answer is an error: what is on
// its machine may run.
func (p *peers) executor(ctx context.Context, row executor.Row) (client *executorclient.Client, there bool, err error) {
	if p == nil {
		return nil, false, nil
	}
	server := roster.OfEngine(row.Engine)
	if server == "" || p.Self(server) {
		return nil, false, nil
	}
	to, err := p.Find(ctx, server)
	if err != nil {
		return nil, true, err
	}
	if to == nil {
		return nil, true, awayError(server)
	}
	path := executorsPath + url.PathEscape(string(row.ID))
	var info runningThere
	err = p.Ask(ctx, *to, http.MethodGet, path, nil, &info)
	if thole.CodeOf(err) == thole.CodeGone {
		return nil, true, nil
	}
	if err != nil {
		return nil, true, err
	}
	return executorclient.Via(func(ctx context.Context) (net.Conn, error) { return p.Connect(ctx, *to, path+"/connection") }, info.Token), true, nil
}
