package modelsim

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

func TestSlowTextComesInPieces(t *testing.T) {
	s := Start(t)
	start := time.Now()
	got := s.request(t, apiChat, offeredBy[apiChat], true, message{role: "user", text: "sim: slow 10ms 2 ;; say 0123456789"})
	if took := time.Since(start); took < 40*time.Millisecond {
		t.Errorf("five pieces with four pauses of 10ms took %v", took)
	}
	if n := strings.Count(got.body, `"content":"`); got.text != "0123456789" || n != 6 { // the first chunk is empty
		t.Errorf("%q came in %d pieces", got.text, n)
	}
}

func TestCompressedRequests(t *testing.T) {
	s := Start(t)
	_, body := requestBody(apiResponses, offeredBy[apiResponses], false, []message{{role: "user", text: "sim: say unpacked"}})
	plain, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	gz := gzip.NewWriter(&zipped)
	_, _ = gz.Write(plain)
	_ = gz.Close()
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = enc.Close() }()
	for name, data := range map[string][]byte{"gzip": zipped.Bytes(), "zstd": enc.EncodeAll(plain, nil), "": plain} {
		if status, answer := post(t, s.URL()+"/v1/responses", name, data); status != http.StatusOK || !strings.Contains(answer, "unpacked") {
			t.Errorf("%q: %d %s", name, status, answer)
		}
	}
	for name, data := range map[string][]byte{"gzip": plain, "zstd": plain, "br": plain} {
		if status, answer := post(t, s.URL()+"/v1/responses", name, data); status != http.StatusBadRequest {
			t.Errorf("a body that is not %s: %d %s", name, status, answer)
		}
	}
}

func TestBadRequestsAreRefused(t *testing.T) {
	s := Start(t)
	for path, body := range map[string]string{
		"/v1/messages": `{"messages":7}`, "/v1/chat/completions": `{`, "/v1/responses": `[]`,
	} {
		if status, answer := post(t, s.URL()+path, "", []byte(body)); status != http.StatusBadRequest || !strings.Contains(answer, "invalid_request_error") {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	if status, _ := post(t, s.URL()+"/v1/other", "", nil); status != http.StatusNotFound {
		t.Errorf("an unknown path gave %d", status)
	}
}

func TestConversationsDoNotMix(t *testing.T) {
	s := Start(t)
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			api := allAPIs[i%3]
			prompt := message{role: "user", text: fmt.Sprintf("talk %d\nsim: http 500 x1 ;; say answer-%d", i, i)}
			if first := s.request(t, api, offeredBy[api], true, prompt); first.status != http.StatusInternalServerError {
				t.Errorf("%d: first attempt gave %d", i, first.status)
			}
			if second := s.request(t, api, offeredBy[api], true, prompt); second.text != fmt.Sprintf("answer-%d", i) {
				t.Errorf("%d: got %q", i, second.text)
			}
		})
	}
	wg.Wait()
	counts := s.Conversations()
	if len(counts) != 24 {
		t.Errorf("%d conversations", len(counts))
	}
}

func post(t *testing.T, url, encoding string, body []byte) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if encoding != "" {
		req.Header.Set("Content-Encoding", encoding)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}
