package main

import (
	"strings"
	"testing"
)

func TestThePrimesBelowTwentyThousandSumTo21171191(t *testing.T) {
	if sum := sumOfPrimes(20_000); sum != 21_171_191 {
		t.Errorf("the sum is %d", sum)
	}
}

func TestAPageHasItsPostsTagsAndCounts(t *testing.T) {
	entries := []entry{{
		Slug: "post-1", Title: "Post 1", Summary: "amber", Author: "Author 2",
		Created: "2026-01-01 00:37", Tags: []tag{{"tag-3", "Tag 3"}}, Comments: 10,
	}}
	body, err := render(indexTemplate, map[string]any{"Entries": entries})
	if err != nil {
		t.Fatal(err)
	}
	for _, wanted := range []string{
		"<title>Blog</title>", `<a href="/post/post-1">Post 1</a>`,
		`<ul><li><a href="/tag/tag-3">Tag 3</a></li></ul>`, "<p class=\"comments\">10 comments</p>",
	} {
		if !strings.Contains(string(body), wanted) {
			t.Errorf("%q is not in\n%s", wanted, body)
		}
	}
}
