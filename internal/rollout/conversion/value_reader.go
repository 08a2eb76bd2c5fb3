package conversion

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// valueReader reads JSON value by value, so that only one value of a document is in memory at a time. It finds where a value
// ends; whether the value is valid, who parses it finds out.
type valueReader struct {
	from io.Reader
	// chunk has been read, and is consumed up to next.
	chunk []byte
	next  int
	err   error
	// value is the last one that was read. The next overwrites it.
	value []byte
	// maxValue is the size of the largest value that is read.
	maxValue int
}

const chunkBytes = 32 << 10

// valueTooLargeError is a value that is larger than maxValue.
type valueTooLargeError struct{ max int }

func (e *valueTooLargeError) Error() string { return "larger than " + formatBytes(int64(e.max)) }

// fill reads the next chunk when the last one is consumed.
func (r *valueReader) fill() error {
	if r.chunk == nil {
		r.chunk = make([]byte, 0, chunkBytes)
	}
	for r.next == len(r.chunk) {
		if r.err != nil {
			return r.err
		}
		var n int
		n, r.err = r.from.Read(r.chunk[:cap(r.chunk)])
		r.chunk, r.next = r.chunk[:n], 0
	}
	return nil
}

// peek is the next byte that is no white space, which is not consumed.
func (r *valueReader) peek() (byte, error) {
	for {
		if err := r.fill(); err != nil {
			return 0, err
		}
		if c := r.chunk[r.next]; !isSpace(c) {
			return c, nil
		}
		r.next++
	}
}

// delimiter consumes the next byte that is no white space, which has to be one of those expected.
func (r *valueReader) delimiter(expected string) (byte, error) {
	c, err := r.peek()
	if err != nil {
		return 0, unexpected(err)
	}
	for i := range len(expected) {
		if expected[i] == c {
			r.next++
			return c, nil
		}
	}
	return 0, fmt.Errorf("invalid JSON: %q instead of one of %q", c, expected)
}

// read gives the text of the next value. It is overwritten by the next call.
func (r *valueReader) read() ([]byte, error) {
	r.value = r.value[:0]
	if _, err := r.peek(); err != nil {
		return nil, unexpected(err)
	}
	depth, inText, escaped := 0, false, false
	for {
		if err := r.fill(); err != nil {
			if errors.Is(err, io.EOF) && depth == 0 && !inText {
				return r.value, nil
			}
			return nil, unexpected(err)
		}
		rest := r.chunk[r.next:]
		end, ended := len(rest), false
	scan:
		for i, c := range rest {
			switch {
			case escaped:
				escaped = false
			case inText && c == '\\':
				escaped = true
			case inText && c != '"':
			case c == '"':
				if inText = !inText; !inText && depth == 0 {
					end, ended = i+1, true
					break scan
				}
			case c == '{' || c == '[':
				depth++
			case depth > 0 && (c == '}' || c == ']'):
				if depth--; depth == 0 {
					end, ended = i+1, true
					break scan
				}
			case depth == 0 && (c == '}' || c == ']' || c == ',' || c == ':' || isSpace(c)):
				end, ended = i, true
				break scan
			}
		}
		if len(r.value)+end > r.maxValue {
			return nil, &valueTooLargeError{r.maxValue}
		}
		r.value = append(r.value, rest[:end]...)
		if r.next += end; ended {
			return r.value, nil
		}
	}
}

// into parses the next value.
func (r *valueReader) into(value any) error {
	text, err := r.read()
	if err != nil {
		return err
	}
	return json.Unmarshal(text, value)
}

// skip reads a value that nobody needs.
func (r *valueReader) skip() error {
	text, err := r.read()
	if err == nil && !json.Valid(text) {
		err = errors.New("invalid JSON")
	}
	return err
}

// object calls member for every member of an object, to read its value.
func (r *valueReader) object(member func(name string) error) error {
	if _, err := r.delimiter("{"); err != nil {
		return err
	}
	if next, err := r.peek(); err == nil && next == '}' {
		r.next++
		return nil
	}
	seen := map[string]bool{}
	for {
		if len(seen) == maxMembers {
			return fmt.Errorf("more than %d fields", maxMembers)
		}
		name, err := r.memberName()
		if err != nil {
			return err
		}
		if seen[name] {
			return &duplicateError{name}
		}
		seen[name] = true
		if err := member(name); err != nil {
			return inField(name, err)
		}
		if c, err := r.delimiter(",}"); err != nil || c == '}' {
			return err
		}
	}
}

// maxMembers of an object that is read member by member: a review has few.
const maxMembers = 100

// duplicateError is a field that an object has twice.
type duplicateError struct{ field string }

func (e *duplicateError) Error() string { return fmt.Sprintf("field %.100q is there twice", e.field) }

func (r *valueReader) memberName() (string, error) {
	text, err := r.read()
	if err != nil {
		return "", err
	}
	var name *string
	if err := json.Unmarshal(text, &name); err != nil {
		return "", err
	}
	if name == nil {
		return "", errors.New("invalid JSON: null as the name of a field")
	}
	_, err = r.delimiter(":")
	return *name, err
}

// list calls element for every element of a list, to read it. Null is an empty list.
func (r *valueReader) list(element func() error) error {
	next, err := r.peek()
	if err != nil {
		return unexpected(err)
	}
	if next == 'n' {
		var none []struct{}
		return r.into(&none)
	}
	if _, err := r.delimiter("["); err != nil {
		return err
	}
	if next, err := r.peek(); err == nil && next == ']' {
		r.next++
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if c, err := r.delimiter(",]"); err != nil || c == ']' {
			return err
		}
	}
}

// end expects nothing more.
func (r *valueReader) end() error {
	c, err := r.peek()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("invalid JSON: %q after the end", c)
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func inField(name string, err error) error { return fmt.Errorf("in %.100s: %w", name, err) }

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }
