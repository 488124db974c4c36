package gitea

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// request calls Gitea without the library, for what it does not give: its answer whatever its status is. What is asked
// is a path below the repository. It is not for what may be long.
func (f *Forge) request(ctx context.Context, method, what string, in any) (status int, answer []byte, err error) {
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			return 0, nil, err
		}
	}
	at := fmt.Sprintf("%s/repos/%s/%s/%s", f.repo.API(), url.PathEscape(f.repo.Owner), url.PathEscape(f.repo.Name),
		what)
	req, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(body.Bytes()))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := f.client.HTTP.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// message is what Gitea says where it refuses.
func message(answer []byte) string {
	var m struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(answer, &m) != nil || m.Message == "" {
		return string(answer)
	}
	return m.Message
}
