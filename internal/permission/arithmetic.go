package permission

import "mvdan.cc/sh/v3/syntax"

// arithmetic judges (( )), $(( )) and the head of a C-style loop.
func (w *walker) arithmetic(src string, exprs ...syntax.ArithmExpr) {
	w.raise(DynamicOrdinary, src, "arithmetic")
	w.evaluates = "arithmetic"
	for _, e := range exprs {
		w.arith(e)
	}
}

// arith visits an arithmetic expression: assignments and substitutions hide in them.
func (w *walker) arith(e syntax.ArithmExpr) {
	switch x := e.(type) {
	case nil:
	case *syntax.Word:
		if x != nil {
			w.word(x, asPattern)
		}
	case *syntax.BinaryArithm:
		if x.Op == syntax.Assgn || x.Op >= syntax.AddAssgn && x.Op <= syntax.PowAssgn {
			w.arithAssigned(x.X)
		}
		w.arith(x.X)
		w.arith(x.Y)
	case *syntax.UnaryArithm:
		if x.Op == syntax.Inc || x.Op == syntax.Dec {
			w.arithAssigned(x.X)
		}
		w.arith(x.X)
	case *syntax.ParenArithm:
		w.arith(x.X)
	default:
		w.raiseOpaque(w.text(e), "arithmetic that is not understood")
	}
}

func (w *walker) arithAssigned(e syntax.ArithmExpr) {
	src := w.text(e)
	w.assigned(src, src, "")
}

// test visits [[ ]].
func (w *walker) test(e syntax.TestExpr) {
	switch x := e.(type) {
	case nil:
	case *syntax.Word:
		w.word(x, asPattern)
	case *syntax.ParenTest:
		w.test(x.X)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar {
			w.evaluates = "[[ -v ]]"
		}
		w.test(x.X)
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			w.evaluates = "[[ ]] with numbers"
		}
		w.test(x.X)
		w.test(x.Y)
	default:
		w.raiseOpaque(w.text(e), "a test that is not understood")
	}
}
