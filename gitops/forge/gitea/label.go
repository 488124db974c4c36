package gitea

import (
	"context"
	"fmt"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

// label adds labels by name, and makes those that do not exist.
func (f *Forge) label(ctx context.Context, number int64, names []string) error {
	known, err := f.labels(ctx)
	if err != nil {
		return err
	}
	var ids []int64
	for _, name := range names {
		id, ok := known[name]
		if !ok {
			made, resp, err := f.api(ctx).CreateLabel(f.repo.Owner, f.repo.Name,
				sdk.CreateLabelOption{Name: name, Color: "#" + forge.LabelColor})
			if err != nil {
				return f.fail(call{fmt.Sprintf("create the label %q", name), needIssue}, resp, err)
			}
			id = made.ID
		}
		ids = append(ids, id)
	}
	if _, resp, err := f.api(ctx).AddIssueLabels(f.repo.Owner, f.repo.Name, number,
		sdk.IssueLabelsOption{Labels: ids}); err != nil {
		return f.fail(call{fmt.Sprintf("label pull request %d", number), needIssue}, resp, err)
	}
	return nil
}

// labels are the labels that the repository can use, by name. These are its own, and those of its organization as far
// as the token may see them.
func (f *Forge) labels(ctx context.Context) (map[string]int64, error) {
	known := map[string]int64{}
	for page := 1; page <= maxPages; page++ {
		// A user has none, and a token without read:organization sees none: those are made anew in the repository.
		more, _, err := f.api(ctx).ListOrgLabels(f.repo.Owner,
			sdk.ListOrgLabelsOptions{ListOptions: sdk.ListOptions{Page: page, PageSize: pageSize}})
		if err != nil || len(more) == 0 {
			break
		}
		for _, l := range more {
			known[l.Name] = l.ID
		}
	}
	for page := 1; page <= maxPages; page++ {
		more, resp, err := f.api(ctx).ListRepoLabels(f.repo.Owner, f.repo.Name,
			sdk.ListLabelsOptions{ListOptions: sdk.ListOptions{Page: page, PageSize: pageSize}})
		if err != nil {
			return nil, f.fail(call{"list labels", needIssue}, resp, err)
		}
		for _, l := range more {
			known[l.Name] = l.ID
		}
		if len(more) == 0 {
			break
		}
	}
	return known, nil
}
