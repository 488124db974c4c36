// Command extract takes from what GitHub publishes of its API the operations that Rampart uses, as they are. It reads
// its OpenAPI document (npm: @octokit/openapi) and its GraphQL schema (npm: @octokit/graphql-schema). Words for people
// and examples are left out, which are most of it. See the Makefile: make github-api.
package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: extract OPENAPI.tgz GRAPHQL.tgz FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "extract:", err)
		os.Exit(1)
	}
}

// What is taken from which package, and what its tarball is known by.
const (
	openAPIFile     = "package/generated/api.github.com.json"
	openAPIVersion  = "@octokit/openapi 23.0.2"
	openAPIDigest   = "sha512-pV8M7L9GY23AybNvTmo2nyjmpmnt6+2sRE/tqr0ZLQcPS4lnw7u5eZGNmwRNkBC3D7gZXbFx5AHzLUVRBXGDhg=="
	graphQLFile     = "package/schema.graphql"
	graphQLVersion  = "@octokit/graphql-schema 15.26.1"
	graphQLDigest   = "sha512-RFDC2MpRBd4AxSRvUeBIVeBU7ojN/SxDfALUd7iVYOSeEK3gZaqR2MGOysj4Zh2xj2RY5fQAUT+Oqq7hWTraMA=="
	openAPIExtract  = "openapi.json"
	graphQLExtract  = "schema.graphql"
	maxDocument     = 64 << 20
	readableByOther = 0o644
)

func run(openAPI, graphQL, folder string) error {
	document, err := unpack(openAPI, openAPIFile, openAPIDigest)
	if err != nil {
		return err
	}
	rest, err := trimOpenAPI(document)
	if err != nil {
		return fmt.Errorf("%s: %w", openAPIFile, err)
	}
	if document, err = unpack(graphQL, graphQLFile, graphQLDigest); err != nil {
		return err
	}
	graph, err := trimGraphQL(document)
	if err != nil {
		return fmt.Errorf("%s: %w", graphQLFile, err)
	}
	if err := os.WriteFile(filepath.Join(folder, openAPIExtract), rest, readableByOther); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, graphQLExtract), graph, readableByOther)
}

// unpack gives a file of a package, if it is the one that is meant.
func unpack(tarball, name, digest string) ([]byte, error) {
	file, err := os.Open(tarball)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	hash := sha512.New()
	if _, err := io.Copy(hash, file); err != nil {
		return nil, err
	}
	if got := "sha512-" + base64.StdEncoding.EncodeToString(hash.Sum(nil)); got != digest {
		return nil, fmt.Errorf("%s: its digest is %s, expected %s", tarball, got, digest)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	plain, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	for archive := tar.NewReader(plain); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s has no %s", tarball, name)
		}
		if err != nil {
			return nil, err
		}
		if header.Name == name {
			return io.ReadAll(io.LimitReader(archive, maxDocument))
		}
	}
}

// indented is JSON with a line for each field, in a fixed order.
func indented(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", " ")
	return append(text, '\n'), err
}
