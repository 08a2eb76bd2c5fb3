package conversion

import "io"

const answerChunkBytes = 64 << 10

// answer is text that only grows, in pieces: a slice would be copied whenever it is full.
type answer struct {
	pieces [][]byte
	size   int64
}

func (a *answer) Write(text []byte) (int, error) {
	n := len(text)
	a.size += int64(n)
	for len(text) > 0 {
		last := len(a.pieces) - 1
		if last < 0 || len(a.pieces[last]) == cap(a.pieces[last]) {
			// A small review has a small answer.
			a.pieces = append(a.pieces, make([]byte, 0, min(max(len(text)+512, 4<<10)<<min(last+1, 4), answerChunkBytes)))
			last++
		}
		piece := a.pieces[last]
		room := min(cap(piece)-len(piece), len(text))
		a.pieces[last] = append(piece, text[:room]...)
		text = text[room:]
	}
	return n, nil
}

func (a *answer) WriteTo(w io.Writer) (written int64, err error) {
	for _, piece := range a.pieces {
		n, err := w.Write(piece)
		if written += int64(n); err != nil {
			return written, err
		}
	}
	return written, nil
}
