#include "parser.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>

#include "errors.h"
#include "flags.h"

namespace hone::cli {
namespace {

constexpr const char* kAbout =
    "Compiles an ONNX model into one engine file that runs fast on this CPU, and says what the speed cost.";
constexpr const char* kExamples = R"(A first session:
  hone check model.onnx                            what is wrong with it, and what would run slowly
  hone build model.onnx -o model.engine            compile; prints fusions, precision, fallbacks, memory
  hone run model.engine --inputs x.npz --outputs y.npz
  hone bench model.engine                          latency percentiles, throughput, memory
  hone inspect model.engine --html model.html      what is inside, as a page

`hone COMMAND --help` has examples of each; `hone trtexec ...` takes a trtexec command line.
Exit codes: 0 fine, 1 a comparison failed, 2 usage, 3 invalid model, engine or data, 4 unsupported,
5 device or memory, 70 a bug in Hone.)";

/// The check without its text on the help page.
CLI::Validator quiet(CLI::Validator check) {
  check.description("");
  return check;
}

/// Raw texts of flags whose values need more than a conversion.
struct Raw {
  std::vector<std::string> shapes, min_shapes, opt_shapes, max_shapes, pools, disable;
  std::string max_memory;
};

/// One CLI11 application over one Request.
class Parser {
 public:
  Parser() : app_(kAbout, "hone") {
    app_.footer(kExamples);
    app_.set_help_flag("-h,--help", "print this page");
    app_.get_formatter()->column_width(34);
    app_.allow_extras(true);
    app_.add_flag("--version", version_, "print the version and what it reads");
    app_.add_flag("--list-passes", list_passes_, "print every pass and rewrite of the optimizer, in order");
    app_.add_flag("--list-ops", list_ops_, "print every operator and who runs it");
    app_.add_flag("--json", r_.json, "with --list-passes, --list-ops, --version: JSON on stdout");
    check();
    build();
    simplify();
    run();
    bench();
    inspect();
    diff();
    tune();
    command("trtexec", Command::kNone,
            "run a trtexec command line: map it to build and bench, say what was ignored",
            "  hone trtexec --onnx=model.onnx --saveEngine=model.engine --shapes=image:8x3x224x224\n"
            "  hone trtexec --loadEngine=model.engine --dumpProfile\n"
            "  hone trtexec --help                              the flags, and what becomes of each");
    CLI::App* c =
        command("completion", Command::kCompletion, "print a completion script for bash, zsh or fish",
                "  source <(hone completion bash)\n"
                "  hone completion zsh > ~/.zfunc/_hone\n"
                "  hone completion fish > ~/.config/fish/completions/hone.fish");
    c->add_option("SHELL", r_.text, "bash, zsh or fish");
  }

  Request parse(std::vector<std::string> args) {
    if (args.empty()) return page(app_.help());
    std::reverse(args.begin(), args.end());
    try {
      app_.parse(args);
    } catch (const CLI::CallForHelp&) {
      return page(app_.help());
    } catch (const CLI::ParseError& e) {
      usage(std::string(e.what()) + hint());
    }
    const std::vector<CLI::App*> used = app_.get_subcommands();
    refuse_extras(used.empty() ? nullptr : used.front());
    if (!used.empty()) {
      r_.command = commands_.at(used.front());
      return finish();
    }
    r_.command = version_       ? Command::kVersion
                 : list_passes_ ? Command::kListPasses
                 : list_ops_    ? Command::kListOps
                                : Command::kNone;
    if (r_.command == Command::kNone) usage("no command; see hone --help");
    return r_;
  }

  std::vector<CommandSpec> specs() const {
    std::vector<CommandSpec> out{spec(app_, "")};
    for (const CLI::App* sub : app_.get_subcommands([](const CLI::App*) { return true; }))
      out.push_back(spec(*sub, sub->get_name()));
    return out;
  }

 private:
  static std::string type_of(const CLI::Option* o) { return o->get_type_name(); }

  static CommandSpec spec(const CLI::App& app, const std::string& name) {
    CommandSpec c;
    c.name = name;
    c.help = app.get_description();
    if (name == "completion") c.words = {"bash", "zsh", "fish"};
    for (const CLI::Option* o : app.get_options([](const CLI::Option*) { return true; })) {
      if (o->get_positional()) {
        c.takes_file = c.words.empty();
        continue;
      }
      FlagSpec f;
      for (const std::string& s : o->get_snames()) f.names.push_back("-" + s);
      for (const std::string& s : o->get_lnames()) f.names.push_back("--" + s);
      f.help = o->get_description();
      f.takes_value = o->get_items_expected_max() > 0;
      const std::string type = type_of(o);
      f.takes_file = type == "FILE" || type == "ENGINE" || type == "OUT.onnx" || type == "X" || type == "Y";
      if (type.find('|') != std::string::npos) {
        std::string word;
        for (const char ch : type + "|") {
          if (ch != '|')
            word += ch;
          else
            f.choices.push_back(std::exchange(word, {}));
        }
      }
      c.flags.push_back(std::move(f));
    }
    return c;
  }

  Request page(std::string text) {
    r_.command = Command::kHelp;
    r_.text = std::move(text);
    return r_;
  }

  std::string hint() const {
    const std::vector<CLI::App*> used = app_.get_subcommands();
    return used.empty() ? "; see hone --help" : "; see hone " + used.front()->get_name() + " --help";
  }

  /// Whatever no option took is an error that names the nearest known word.
  void refuse_extras(const CLI::App* sub) const {
    const std::vector<std::string> extras = sub != nullptr ? sub->remaining() : app_.remaining();
    if (extras.empty()) return;
    const auto flag = std::find_if(extras.begin(), extras.end(),
                                   [](const std::string& s) { return s.size() > 1 && s[0] == '-'; });
    const std::string word = flag != extras.end() ? *flag : extras.front();
    std::vector<std::string> known;
    if (sub == nullptr && flag == extras.end()) {
      for (const CLI::App* s : app_.get_subcommands([](const CLI::App*) { return true; }))
        known.push_back(s->get_name());
      const std::string near = nearest(word, known);
      usage("unknown command '" + word + "'" +
            (near.empty() ? "; see hone --help" : "; did you mean '" + near + "'?"));
    }
    if (flag == extras.end()) usage("'" + word + "' is one argument too many" + hint());
    for (const FlagSpec& f : spec(sub != nullptr ? *sub : app_, "").flags)
      known.insert(known.end(), f.names.begin(), f.names.end());
    const std::string near = nearest(word, known);
    usage("unknown flag " + word.substr(0, word.find('=')) +
          (near.empty() ? hint() : "; did you mean " + near + "?"));
  }

  // --- pieces that commands share ---

  CLI::App* command(const char* name, Command which, const char* what, const std::string& examples) {
    CLI::App* sub = app_.add_subcommand(name, what);
    sub->allow_extras(true);
    sub->footer("Examples:\n" + examples);
    commands_[sub] = which;
    return sub;
  }

  template <class T>
  static CLI::Option* value(CLI::App* sub, const char* names, T& into, const char* type, const char* what,
                            const char* group) {
    return sub->add_option(names, into, what)->type_name(type)->group(group)->allow_extra_args(false);
  }

  void json_flag(CLI::App* sub) {
    sub->add_flag("--json", r_.json, "one JSON object on stdout (docs/json.md), nothing else there");
    sub->add_flag("-v,--verbose", r_.verbose, "say more; developer lines on stderr");
  }

  void shape_flags(CLI::App* sub, bool profiles) {
    const char* g = "Shapes";
    value(sub, "--shapes", raw_.shapes, "NAME:1x3x8x8,...",
          "shapes of inputs; a scalar is NAME:scalar, quote a name that holds a comma", g);
    value(sub, "--batch", r_.build.batch, "N", "first dimension of every input", g)
        ->check(quiet(CLI::Range(int64_t{1}, int64_t{1} << 31)));
    if (!profiles) return;
    value(sub, "--minShapes,--min-shapes", raw_.min_shapes, "NAME:...",
          "smallest shapes of an optimization profile", g);
    value(sub, "--optShapes,--opt-shapes", raw_.opt_shapes, "NAME:...", "shapes to be fast at", g);
    value(sub, "--maxShapes,--max-shapes", raw_.max_shapes, "NAME:...",
          "largest shapes; give the three again for another profile", g);
  }

  void build_flags(CLI::App* sub, bool tunes) {
    const char* g = "Building";
    shape_flags(sub, true);
    value(sub, "--target", r_.build.target, "cpu|cpu-portable|cpu-avx2|cpu-avx512|ref",
          "what to build for; cpu is this machine", g);
    sub->add_flag("--strict-f32", r_.build.strict_f32, "IEEE f32 products and sums only")->group(g);
    value(sub, "--disable", raw_.disable, "A,B",
          "passes or rewrites to leave out, names or globs (--list-passes)", g);
    sub->add_flag("--verify", r_.build.verify,
                  "run the graph before and after each rewrite; stop at the first that changes too much")
        ->group(g);
    sub->add_flag("--overrideInitializers,--override-initializers", r_.build.override_initializers,
                  "initializers that are also inputs stay inputs")
        ->group(g);
    if (tunes) {
      sub->add_flag_callback(
             "--tune", [this] { r_.tune = true; }, "time tactics")
          ->group(g);
      sub->add_flag_callback(
             "--no-tune", [this] { r_.tune = false; }, "choose tactics by rule, without timing")
          ->group(g);
      cache_flags(sub);
    }
    value(sub, "--memPoolSize,--mem-pool-size", raw_.pools, "workspace:64M",
          "memory that one step may use besides its tensors; MiB without a suffix", g);
    value(sub, "--maxMemory,--max-memory", raw_.max_memory, "64M",
          "activation memory that the engine may use; MiB without a suffix", g);
    precision_flags(sub);
  }

  void cache_flags(CLI::App* sub) {
    value(sub, "--timingCacheFile,--timing-cache", r_.build.timing_cache_file, "FILE",
          "timing cache: read when it is there, written after tuning", "Building");
    sub->add_flag("--errorOnTimingCacheMiss,--error-on-timing-cache-miss",
                  r_.build.error_on_timing_cache_miss,
                  "fail when a layer is not in the cache: the same cache then gives the same bytes")
        ->group("Building");
  }

  void precision_flags(CLI::App* sub) {
    const char* g = "Precision (this version builds f32 only: each ends with exit code 4)";
    for (const char* name : {"--fp16", "--bf16", "--int8", "--fp8", "--best"})
      sub->add_flag_callback(
             name, [this, name] { r_.precision.emplace_back(name); }, "permit this type beside f32")
          ->group(g);
    const auto text = [&](const char* names, const char* type, const char* what) {
      const std::string first = std::string(names).substr(0, std::string(names).find(','));
      sub->add_option_function<std::string>(
             names, [this, first](const std::string& v) { r_.precision.push_back(first + "=" + v); }, what)
          ->type_name(type)
          ->group(g);
    };
    text("--calib", "FILE", "calibration data or cache");
    text("--layerPrecisions,--layer-precisions", "NAME:TYPE,...", "types of single layers");
    text("--precisionConstraints,--precision-constraints", "none|prefer|obey",
         "whether layerPrecisions are orders");
  }

  void run_flags(CLI::App* sub) {
    value(sub, "--threads", r_.threads, "N",
          "threads; 0: every core this process may use. Results do not depend on it", "Running")
        ->check(quiet(CLI::Range(0, 4096)));
    value(sub, "--seed", r_.seed, "N", "seed of the random inputs that serve without --inputs", "Running");
  }

  void load_engine(CLI::App* sub) {
    value(sub, "--loadEngine,--load-engine", loaded_, "ENGINE", "the engine, as trtexec spells it",
          "Running");
  }

  void out_flag(CLI::App* sub, const char* names, const char* type, const char* what) {
    sub->add_option(names, r_.out, what)->type_name(type);
  }

  // --- the commands ---

  void check() {
    CLI::App* c = command(
        "check", Command::kCheck, "every problem of a model at once, with a remedy for each",
        "  hone check model.onnx\n"
        "  hone check model.onnx --target cpu-avx2          what would run on the slow reference there\n"
        "  hone check model.onnx --json | jq '.problems[].message'");
    c->add_option("MODEL", r_.path, "an .onnx file, external data beside it");
    json_flag(c);
    build_flags(c, false);
  }

  void build() {
    CLI::App* c = command("build", Command::kBuild, "compile a model into an engine file",
                          "  hone build model.onnx -o model.engine\n"
                          "  hone build model.onnx -o m.engine --shapes image:8x3x224x224\n"
                          "  hone build model.onnx -o m.engine --minShapes=x:1x3x48x32 "
                          "--optShapes=x:1x3x48x320 --maxShapes=x:8x3x48x1280\n"
                          "  hone build model.onnx -o m.engine --timingCacheFile=cpu.timing        tune "
                          "once, build again in no time\n"
                          "  hone build model.onnx -o m.engine --no-tune --disable 'fuse_*' --verify "
                          "--save-onnx optimised.onnx");
    c->add_option("MODEL", r_.path, "an .onnx file, external data beside it");
    out_flag(c, "-o,--saveEngine,--save-engine", "ENGINE", "the engine file to write");
    json_flag(c);
    build_flags(c, true);
    value(c, "--save-onnx,--saveOnnx", r_.save_onnx, "FILE", "also write the optimised graph as ONNX",
          "Building");
    c->add_flag("--list-passes", list_passes_, "print every pass and rewrite, then end");
  }

  void simplify() {
    CLI::App* c =
        command("simplify", Command::kSimplify, "write the optimised graph as ONNX, without an engine",
                "  hone simplify model.onnx -o simple.onnx\n"
                "  hone simplify model.onnx -o simple.onnx --opset 17 --disable 'fuse_*'");
    c->add_option("MODEL", r_.path, "an .onnx file, external data beside it");
    out_flag(c, "-o,--output", "OUT.onnx", "the file to write");
    json_flag(c);
    build_flags(c, false);
    value(c, "--opset", r_.opset, "N", "opset of the result; without it the lowest that its operators accept",
          "Building")
        ->check(quiet(CLI::Range(1, 1000)));
  }

  void run() {
    CLI::App* c = command("run", Command::kRun, "run a model or an engine on data",
                          "  hone run model.engine --inputs x.npz --outputs y.npz\n"
                          "  hone run model.onnx --inputs folder/ --outputs y.npz --threads 1\n"
                          "  hone run model.onnx --inputs x.npz --outputs truth.npz --backend ref --oracle\n"
                          "  hone run model.engine --inputs x.npz --outputs y.npz --tap layer1/conv_out\n"
                          "  hone run model.onnx                               seeded random inputs, a "
                          "summary of the outputs\n\n"
                          "Data: an .npz (name -> array), a folder of .npz, or Polygraphy inputs JSON. An "
                          "array of one rank more than\n"
                          "its input holds one sample per leading index; the outputs then gain that axis.");
    c->add_option("MODEL|ENGINE", r_.path, "an .onnx file or an engine");
    const char* g = "Running";
    value(c, "--inputs", r_.inputs, "X", "input data; without it seeded random inputs", g);
    value(c, "--outputs", r_.outputs, "Y", "the .npz to write: outputs by name, then taps", g);
    value(c, "--backend", r_.backend, "cpu|ref",
          "ref: the graph as imported, node by node on the reference kernels", g);
    c->add_flag("--oracle", r_.oracle, "with --backend ref: f64 throughout, nothing rounded")->group(g);
    value(c, "--tap", r_.taps, "NAME", "also read this tensor at a fused boundary; repeat for more", g);
    json_flag(c);
    run_flags(c);
    load_engine(c);
    build_flags(c, true);
  }

  void bench() {
    CLI::App* c = command(
        "bench", Command::kBench, "latency percentiles with confidence, throughput, memory, time per layer",
        "  hone bench model.engine\n"
        "  hone bench model.engine --threads 1 --dumpProfile\n"
        "  hone bench model.onnx --shapes image:8x3x224x224 --tune\n"
        "  hone bench model.engine --iterations 100 --json | jq .latency_ms.p99\n"
        "  hone bench model.engine --record                  keep the result in the engine file");
    c->add_option("MODEL|ENGINE", r_.path, "an .onnx file or an engine");
    const char* g = "Running";
    value(c, "--inputs", r_.inputs, "X", "input data (its first sample); without it seeded random inputs", g);
    value(c, "--iterations", r_.iterations, "N", "timed runs; with --duration too: at least so many", g)
        ->check(quiet(CLI::Range(int64_t{1}, int64_t{10'000'000})));
    value(c, "--duration", r_.duration_s, "S", "seconds of timed runs, at least ten; default 3", g)
        ->check(quiet(CLI::Range(0.0, 1e6)));
    value(c, "--warmUp,--warm-up", r_.warm_up_ms, "MS", "milliseconds before timing; default 200", g)
        ->check(quiet(CLI::Range(0.0, 1e9)));
    run_flags(c);
    load_engine(c);
    json_flag(c);
    const char* e = "Reporting";
    c->add_flag("--dumpProfile,--dump-profile", r_.dump_profile, "time of each layer")->group(e);
    value(c, "--exportProfile,--export-profile", r_.export_profile, "FILE", "the same as trtexec's JSON", e);
    value(c, "--exportTimes,--export-times", r_.export_times, "FILE", "every timed run as trtexec's JSON", e);
    value(c, "--exportLayerInfo,--export-layer-info", r_.export_layer_info, "FILE",
          "layers as trtexec's JSON", e);
    c->add_flag("--record", r_.record, "append the result to the engine file as a record")->group(e);
    build_flags(c, true);
  }

  void inspect() {
    CLI::App* c =
        command("inspect", Command::kInspect, "header, layers, tactics, precision, memory and ledger",
                "  hone inspect model.engine\n"
                "  hone inspect model.engine --html model.html       one page, no network needed\n"
                "  hone inspect model.engine --verify                check every byte of the file\n"
                "  hone inspect model.onnx --target cpu-avx2         what a build without tuning would give\n"
                "  hone inspect model.engine --shapes image:8x3x224x224   the figures at other shapes");
    c->add_option("MODEL|ENGINE", r_.path, "an .onnx file or an engine");
    json_flag(c);
    value(c, "--html", r_.html, "FILE", "write one self-contained page", "Reporting");
    value(c, "--exportLayerInfo,--export-layer-info", r_.export_layer_info, "FILE",
          "layers as trtexec's JSON", "Reporting");
    build_flags(c, true);
  }

  void diff() {
    CLI::App* c =
        command("diff", Command::kDiff, "compare two engines, or two files of tensors",
                "  hone diff before.engine after.engine              plan, tactics, times, memory, ledger\n"
                "  hone diff ours.npz theirs.npz                     exit 1 beyond relative L2 1e-5\n"
                "  hone diff ours.npz theirs.npz --rtol 1e-3 --atol 1e-6");
    c->add_option("A", r_.path, "an engine or an .npz");
    c->add_option("B", r_.other, "another of the same kind; differences are measured relative to it");
    const char* g = "Limits for tensors (any given must hold; default --rel-l2 1e-5)";
    value(c, "--rtol", r_.rtol, "R", "each element: |a - b| <= atol + rtol |b|", g)
        ->check(quiet(CLI::NonNegativeNumber));
    value(c, "--atol", r_.atol, "A", "see --rtol", g)->check(quiet(CLI::NonNegativeNumber));
    value(c, "--rel-l2", r_.rel_l2, "L", "each array: |a - b| / |b|, Euclidean norms", g)
        ->check(quiet(CLI::NonNegativeNumber));
    json_flag(c);
  }

  void tune() {
    CLI::App* c = command("tune", Command::kTune, "time the tactics of a model's layers into a timing cache",
                          "  hone tune model.onnx --timingCacheFile=cpu.timing\n"
                          "  hone tune model.onnx --timingCacheFile=cpu.timing --shapes image:8x3x224x224\n"
                          "  hone tune model.engine --timingCacheFile=here.timing -o here.engine   the same "
                          "engine, tuned on this machine\n\n"
                          "The cache is text: it can be read, edited and merged. A build with it and "
                          "--no-tune uses what it holds.");
    c->add_option("MODEL|ENGINE", r_.path, "an .onnx file or an engine");
    out_flag(c, "-o,--saveEngine,--save-engine", "ENGINE", "also write the tuned engine");
    json_flag(c);
    build_flags(c, false);
    cache_flags(c);
  }

  // --- from texts to values ---

  Request finish() {
    const auto join = [](const std::vector<std::string>& parts) {
      std::string s;
      for (const std::string& p : parts) s += (s.empty() ? "" : ",") + p;
      return s;
    };
    r_.build.shapes = parse_shapes(join(raw_.shapes), "--shapes");
    const size_t n = std::max({raw_.min_shapes.size(), raw_.opt_shapes.size(), raw_.max_shapes.size()});
    const auto fill = [&](const std::vector<std::string>& texts, const char* flag,
                          std::map<std::string, Shape> ProfileSpec::*field) {
      if (!texts.empty() && texts.size() != n)
        usage(std::string(flag) + " is given " + std::to_string(texts.size()) + " times for " +
              std::to_string(n) + " profiles; give it once for each, or never");
      for (size_t i = 0; i < texts.size(); ++i) r_.build.profiles[i].*field = parse_shapes(texts[i], flag);
    };
    r_.build.profiles.resize(n);
    fill(raw_.min_shapes, "--minShapes", &ProfileSpec::min);
    fill(raw_.opt_shapes, "--optShapes", &ProfileSpec::opt);
    fill(raw_.max_shapes, "--maxShapes", &ProfileSpec::max);
    r_.build.disable = parse_list(join(raw_.disable));
    std::vector<std::string> ignored;
    r_.build.max_workspace =
        raw_.pools.empty() ? 0 : parse_pools(join(raw_.pools), "--memPoolSize", &ignored);
    for (const std::string& pool : ignored)
      warn("--memPoolSize=" + pool + ": a CPU has no such memory; ignored");
    if (!raw_.max_memory.empty()) {
      r_.build.max_memory = parse_bytes(raw_.max_memory, "--maxMemory");
      if (r_.build.max_memory == 0)
        usage("--maxMemory: an engine cannot run in 0 bytes; leave the flag out for no limit");
    }
    if (!loaded_.empty()) {
      if (!r_.path.empty())
        usage("both '" + r_.path + "' and --loadEngine=" + loaded_ + " are given; give one");
      r_.path = loaded_;
    }
    if (list_passes_) r_.command = Command::kListPasses;
    if (r_.build.error_on_timing_cache_miss && r_.build.timing_cache_file.empty())
      usage("--errorOnTimingCacheMiss needs --timingCacheFile");
    // On inspect, --verify is about the file; a model has none.
    if (r_.command == Command::kInspect) r_.verify_file = r_.build.verify;
    return r_;
  }

  CLI::App app_;
  Request r_;
  Raw raw_;
  std::string loaded_;
  bool version_ = false, list_passes_ = false, list_ops_ = false;
  std::map<const CLI::App*, Command> commands_;
};

}  // namespace

Request parse_command_line(const std::vector<std::string>& args) { return Parser().parse(args); }

std::vector<CommandSpec> command_specs() { return Parser().specs(); }

}  // namespace hone::cli
