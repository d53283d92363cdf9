// hone: compiles ONNX models and runs them. `hone --help` says what it does.
#include "app.h"

int main(int argc, char** argv) { return hone::cli::run_program({argv + 1, argv + argc}); }
