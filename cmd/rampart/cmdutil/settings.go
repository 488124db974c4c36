package cmdutil

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// VariableOf gives the variable of a flag: RAMPART_ and the name in capitals.
func VariableOf(flag string) string {
	return "RAMPART_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// applySettings gives each flag that is not on the command line the value of its variable, else that of the file. A
// flag that excludes one of the command line keeps its default: the command line wins.
func (a *App) applySettings(cmd *cobra.Command) error {
	flags := cmd.Flags()
	excluded := excludedBy(flags)
	if err := fromVariable(a, flags.Lookup("config"), flags); err != nil {
		return err
	}
	file, err := readSettings(a.config, cmd.Root())
	errs := []error{err}
	flags.VisitAll(func(f *pflag.Flag) {
		if slices.Contains(excluded, f.Name) {
			return
		}
		errs = append(errs, fromVariable(a, f, flags))
		if is, ok := file[f.Name]; ok && !f.Changed {
			errs = append(errs, set(flags, f, is.values, fmt.Sprintf("%s:%d: %s", a.config, is.line, f.Name)))
		}
	})
	return errors.Join(errs...)
}

// excludedBy are the flags that go with none of those on the command line, by what MarkFlagsMutuallyExclusive noted.
func excludedBy(flags *pflag.FlagSet) []string {
	var out []string
	flags.Visit(func(f *pflag.Flag) {
		for _, group := range f.Annotations["cobra_annotation_mutually_exclusive"] {
			for _, name := range strings.Fields(group) {
				if name != f.Name {
					out = append(out, name)
				}
			}
		}
	})
	return out
}

func fromVariable(a *App, f *pflag.Flag, flags *pflag.FlagSet) error {
	if f == nil || f.Changed || !Configurable(f.Name) {
		return nil
	}
	value, ok := a.LookupEnv(VariableOf(f.Name))
	if !ok || value == "" {
		return nil
	}
	return set(flags, f, []string{value}, VariableOf(f.Name))
}

// Configurable reports whether a variable or the file of --config may set a flag. Flags that make a printing command
// change something are for the command line only.
func Configurable(flag string) bool {
	return !slices.Contains([]string{"help", "install", "replace-controller"}, flag)
}

// set sets a flag; source says where the values come from.
func set(flags *pflag.FlagSet, f *pflag.Flag, values []string, source string) error {
	if list, ok := f.Value.(pflag.SliceValue); ok && len(values) != 1 {
		f.Changed = true
		if err := list.Replace(values); err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
		return nil
	}
	if len(values) != 1 {
		return fmt.Errorf("%s: one value is wanted, not a list", source)
	}
	if err := flags.Set(f.Name, values[0]); err != nil {
		if want, ok := wants[f.Value.Type()]; ok {
			return fmt.Errorf("%s: %q: want %s", source, values[0], want)
		}
		var invalid *pflag.InvalidValueError
		if errors.As(err, &invalid) { // it names the flag, as source does, and the value, as its cause does
			err = invalid.Unwrap()
		}
		return fmt.Errorf("%s: %w", source, err)
	}
	return nil
}

// wants says what a value has to be, by the type of its flag.
var wants = map[string]string{"bool": "true or false", "duration": "a duration such as 30s or 5m",
	"int": "a whole number", "float64": "a number"}

// setting is what the file of flags says of one.
type setting struct {
	line   int
	values []string
}

// readSettings reads the file of flags: a mapping from names to values or lists of values. With an error there may be
// settings, too.
func readSettings(name string, root *cobra.Command) (map[string]setting, error) {
	if name == "" {
		return nil, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read --config: %w", err)
	}
	var document yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	switch err := dec.Decode(&document); {
	case errors.Is(err, io.EOF): // nothing is set
		return nil, nil
	case err != nil:
		line, message := v1alpha1.SyntaxError(data, err)
		return nil, fmt.Errorf("%s:%d: %s", name, line, message)
	case !errors.Is(dec.Decode(&yaml.Node{}), io.EOF):
		return nil, fmt.Errorf("read --config %s: there is more than one YAML document in it", name)
	case document.Content[0].Tag == "!!null": // comments alone
		return nil, nil
	case document.Content[0].Kind != yaml.MappingNode:
		return nil, fmt.Errorf("%s:%d: want names of flags with their values, such as interval: 10s", name,
			document.Content[0].Line)
	}
	known := flagNames(root)
	out, seen := map[string]setting{}, map[string]bool{}
	var errs []error
	for pair := range slices.Chunk(document.Content[0].Content, 2) {
		key, line := pair[0].Value, pair[0].Line
		values, err := scalars(pair[1])
		switch {
		case !slices.Contains(known, key) || key == "config":
			err = fmt.Errorf("there is no flag --%s", key)
			if near := v1alpha1.Closest(key, known); near != "" {
				err = fmt.Errorf("%w (did you mean %s?)", err, near)
			}
		case seen[key]:
			err = fmt.Errorf("%s: is set above already", key)
		case err != nil:
			err = fmt.Errorf("%s: %w", key, err)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", name, line, err))
		} else {
			out[key] = setting{line, values}
		}
		seen[key] = true
	}
	return out, errors.Join(errs...)
}

func scalars(n *yaml.Node) ([]string, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		return []string{n.Value}, nil
	case yaml.SequenceNode:
		var out []string
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				return nil, errors.New("a list of plain values is wanted")
			}
			out = append(out, item.Value)
		}
		return out, nil
	}
	return nil, errors.New("a plain value, or a list of them, is wanted")
}

// flagNames are the flags of all commands, sorted.
func flagNames(root *cobra.Command) []string {
	names := map[string]bool{}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, set := range []*pflag.FlagSet{c.PersistentFlags(), c.LocalFlags()} {
			set.VisitAll(func(f *pflag.Flag) {
				if Configurable(f.Name) {
					names[f.Name] = true
				}
			})
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	return SortedKeys(names)
}

// Choice is a flag with few allowed values.
type Choice struct {
	Value   string
	allowed []string
}

var _ pflag.Value = (*Choice)(nil)

// NewChoice gives a flag with its default and the values that it allows.
func NewChoice(value string, allowed ...string) Choice { return Choice{value, allowed} }

func (c *Choice) String() string { return c.Value }

// Type is what help calls it.
func (c *Choice) Type() string { return "string" }

// Set takes one of the allowed values.
func (c *Choice) Set(value string) error {
	if !slices.Contains(c.allowed, value) {
		return fmt.Errorf("%q: want one of %s", value, c.List())
	}
	c.Value = value
	return nil
}

// List joins the allowed values with commas.
func (c *Choice) List() string { return strings.Join(c.allowed, ", ") }

// Complete completes the allowed values.
func (c *Choice) Complete(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return c.allowed, cobra.ShellCompDirectiveNoFileComp
}
