package main

import (
	"bytes"
	"embed"
	"errors"
	"html/template"
	"log"
	"net/http"

	"github.com/jackc/pgx/v5"
)

//go:embed templates
var files embed.FS

var (
	indexTemplate  = page("index.html")
	tagTemplate    = page("tag.html")
	detailTemplate = page("post.html")
)

func page(name string) *template.Template {
	return template.Must(template.ParseFS(files,
		"templates/base.html", "templates/entries.html", "templates/"+name))
}

func render(t *template.Template, data any) ([]byte, error) {
	var body bytes.Buffer
	err := t.ExecuteTemplate(&body, "base.html", data)
	return body.Bytes(), err
}

// answer makes a handler of what works out a page.
func answer(work func(*http.Request) ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := work(r)
		switch {
		case err == nil:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			// An error here means that the client is gone.
			_, _ = w.Write(body)
		case errors.Is(err, pgx.ErrNoRows):
			w.WriteHeader(http.StatusNotFound)
		default:
			log.Print("error: ", err)
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
}

func (b *blog) index(r *http.Request) ([]byte, error) {
	entries, err := b.newest(r.Context())
	if err != nil {
		return nil, err
	}
	return render(indexTemplate, map[string]any{"Entries": entries})
}

func (b *blog) detail(r *http.Request) ([]byte, error) {
	post, err := b.post(r.Context(), r.PathValue("slug"))
	if err != nil {
		return nil, err
	}
	return render(detailTemplate, post)
}

func (b *blog) tag(r *http.Request) ([]byte, error) {
	tag, entries, err := b.tagged(r.Context(), r.PathValue("slug"))
	if err != nil {
		return nil, err
	}
	return render(tagTemplate, map[string]any{"Tag": tag, "Entries": entries})
}
