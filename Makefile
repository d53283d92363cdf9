# make          Release build into build/
# make demo     set up, build, run the demo
# make test     set up, build, test: about 5 minutes after the build
# make check    what CI runs: format, layers, size, clang-tidy, all conformance, sanitizers, fuzzers, tests
# make test-all what test leaves out; hours
# make fix      clang-format on files changed since the merge base
# make bench    build and run the benchmarks;  make conformance: all of ONNX's node tests;
# make zoo: real pretrained models against ONNX Runtime
# make docs     generated documentation into build/docs
.PHONY: release demo test test-all check fix bench conformance zoo docs clean

release:
	@bash scripts/build.sh

demo:
	@bash scripts/demo.sh

test:
	@bash scripts/test.sh

test-all:
	@bash scripts/test_all.sh

check:
	@bash scripts/check.sh

fix:
	@bash scripts/format.sh fix

bench: release
	@bash scripts/build.sh bench
	@for program in build/bench/*; do if [ -x "$$program" ] && [ -f "$$program" ]; then "$$program" || exit 1; fi; done

conformance: release
	@bash scripts/setup.sh --no-check
	@.venv/bin/python scripts/conformance.py

zoo: release
	@bash scripts/setup.sh --no-check
	@.venv/bin/python scripts/compare_graphs.py --set zoo

docs: release
	@python3 scripts/gen_docs.py

clean:
	rm -rf build build-*/
