package metrics

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var started = time.Now()

// Process tells what this process uses, under the names that dashboards know.
func Process(context.Context) ([]Family, error) {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	out := []Family{
		One("process_start_time_seconds", "When the process started, in seconds since 1970.", Gauge, float64(started.UnixMilli())/1e3),
		One("go_goroutines", "Goroutines that exist.", Gauge, float64(runtime.NumGoroutine())),
		One("go_memstats_heap_inuse_bytes", "Bytes in heap spans in use.", Gauge, float64(mem.HeapInuse)),
		One("go_memstats_alloc_bytes_total", "Bytes allocated since the start.", Counter, float64(mem.TotalAlloc)),
		One("go_gc_pause_seconds_total", "Time for which garbage collection stopped everything.", Counter, float64(mem.PauseTotalNs)/1e9),
		One("go_info", "The Go that built it.", Gauge, 1, "version", runtime.Version()),
	}
	var use syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &use) == nil {
		seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
		out = append(out, One("process_cpu_seconds_total", "CPU time used.", Counter, seconds(use.Utime)+seconds(use.Stime)))
	}
	// What follows only Linux tells.
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := strings.Fields(string(b)); len(fields) > 1 {
			if pages, err := strconv.ParseFloat(fields[1], 64); err == nil {
				out = append(out, One("process_resident_memory_bytes", "Memory in RAM.", Gauge, pages*float64(os.Getpagesize())))
			}
		}
	}
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
		out = append(out, One("process_open_fds", "Open file descriptors.", Gauge, float64(len(fds))))
	}
	return out, nil
}
