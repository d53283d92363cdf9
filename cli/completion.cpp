// Completion scripts, generated from the parser's own description.
#include <algorithm>

#include "commands.h"
#include "errors.h"
#include "parser.h"
#include "trtexec.h"

namespace hone::cli {
namespace {

std::string words(const std::vector<std::string>& list) {
  std::string s;
  for (const std::string& w : list) s += (s.empty() ? "" : " ") + w;
  return s;
}

std::vector<std::string> flag_names(const CommandSpec& c) {
  if (c.name == "trtexec") return trtexec_flags();
  std::vector<std::string> names;
  for (const FlagSpec& f : c.flags) names.insert(names.end(), f.names.begin(), f.names.end());
  return names;
}

/// In single quotes for a shell.
std::string quoted(const std::string& s) {
  std::string out = "'";
  for (char c : s) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string bash(const std::vector<CommandSpec>& specs) {
  std::string commands, flags, values;
  std::vector<std::string> file_flags;
  for (const CommandSpec& c : specs) {
    if (!c.name.empty()) commands += (commands.empty() ? "" : " ") + c.name;
    flags += "    " + (c.name.empty() ? std::string("\"\"") : c.name) + ") flags=\"" + words(flag_names(c)) +
             "\"" + (c.words.empty() ? "" : "; words=\"" + words(c.words) + "\"") + " ;;\n";
    for (const FlagSpec& f : c.flags) {
      if (!f.choices.empty()) {
        std::string pattern;
        for (const std::string& n : f.names) pattern += (pattern.empty() ? "" : "|") + n;
        const std::string line = "    " + pattern + ") COMPREPLY=($(compgen -W \"" + words(f.choices) +
                                 "\" -- \"$current\")); return ;;\n";
        if (values.find(line) == std::string::npos) values += line;
      } else if (f.takes_file) {
        file_flags.insert(file_flags.end(), f.names.begin(), f.names.end());
      }
    }
  }
  std::sort(file_flags.begin(), file_flags.end());
  file_flags.erase(std::unique(file_flags.begin(), file_flags.end()), file_flags.end());
  std::string pattern;
  for (const std::string& n : file_flags) pattern += (pattern.empty() ? "" : "|") + n;
  return "# bash completion of hone; load it with: source <(hone completion bash)\n"
         "_hone() {\n"
         "  local current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\" "
         "command=\"\" flags words=\"\"\n"
         "  # \"=\" is a word of its own: --flag = value\n"
         "  [[ \"$current\" == \"=\" ]] && { previous=\"${COMP_WORDS[COMP_CWORD-1]}\"; current=\"\"; }\n"
         "  [[ \"$previous\" == \"=\" ]] && previous=\"${COMP_WORDS[COMP_CWORD-2]}\"\n"
         "  ((COMP_CWORD > 1)) && command=\"${COMP_WORDS[1]}\"\n"
         "  case \"$previous\" in\n" +
         values +
         (pattern.empty() ? ""
                          : "    " + pattern + ") COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n") +
         "  esac\n"
         "  case \"$command\" in\n" +
         flags +
         "    *) flags=\"\" ;;\n"
         "  esac\n"
         "  if [[ \"$current\" == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$flags\" -- \"$current\"))\n"
         "    [[ \"${COMPREPLY[0]}\" == *= ]] && compopt -o nospace\n"
         "  elif [[ -z \"$command\" ]]; then\n"
         "    COMPREPLY=($(compgen -W \"" +
         commands +
         "\" -- \"$current\"))\n"
         "  elif [[ -n \"$words\" ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "  else\n"
         "    COMPREPLY=($(compgen -f -- \"$current\"))\n"
         "  fi\n"
         "}\n"
         "complete -o filenames -F _hone hone\n";
}

/// Text inside [...] of a zsh option spec.
std::string zsh_text(const std::string& s) {
  std::string out;
  for (char c : s) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh(const std::vector<CommandSpec>& specs) {
  std::string list, cases;
  const auto options = [](const CommandSpec& c) {
    std::string s;
    if (c.name == "trtexec") {
      for (const std::string& n : trtexec_flags())
        s += " \\\n        " + quoted(n.back() == '=' ? n.substr(0, n.size() - 1) + "=-:value:_files" : n);
      return s;
    }
    for (const FlagSpec& f : c.flags)
      for (const std::string& n : f.names) {
        std::string spec =
            n + (f.takes_value ? (n.rfind("--", 0) == 0 ? "=" : "+") : "") + "[" + zsh_text(f.help) + "]";
        if (f.takes_value)
          spec += ":value:" + (!f.choices.empty() ? "(" + words(f.choices) + ")"
                               : f.takes_file     ? std::string("_files")
                                                  : std::string(" "));
        s += " \\\n        " + quoted(spec);
      }
    if (!c.words.empty())
      s += " \\\n        " + quoted("1:word:(" + words(c.words) + ")");
    else if (c.takes_file)
      s += " \\\n        '*:file:_files'";
    return s;
  };
  for (const CommandSpec& c : specs) {
    if (c.name.empty()) continue;
    list += "    " + quoted(c.name + ":" + zsh_text(c.help)) + "\n";
    cases += "      " + c.name + ") _arguments -s" + options(c) + " ;;\n";
  }
  return "#compdef hone\n"
         "# zsh completion of hone; put it on $fpath as _hone: hone completion zsh > ~/.zfunc/_hone\n"
         "_hone() {\n"
         "  local -a commands\n"
         "  commands=(\n" +
         list +
         "  )\n"
         "  if (( CURRENT == 2 )); then\n"
         "    _describe command commands\n"
         "    _arguments" +
         (specs.empty() ? "" : options(specs.front())) +
         "\n"
         "  else\n"
         "    local command=$words[2]\n"
         "    shift words\n"
         "    (( CURRENT-- ))\n"
         "    case $command in\n" +
         cases +
         "    esac\n"
         "  fi\n"
         "}\n"
         "if [ \"$funcstack[1]\" = \"_hone\" ]; then _hone; else compdef _hone hone; fi\n";
}

std::string fish(const std::vector<CommandSpec>& specs) {
  std::string s = "# fish completion of hone: hone completion fish > ~/.config/fish/completions/hone.fish\n";
  const auto flag = [](const std::string& condition, const FlagSpec& f) {
    std::string line = "complete -c hone -n " + quoted(condition);
    for (const std::string& n : f.names)
      line += n.rfind("--", 0) == 0 ? " -l " + n.substr(2) : " -s " + n.substr(1);
    if (f.takes_value) line += f.takes_file ? " -r -F" : " -x";
    if (!f.choices.empty()) line += " -a " + quoted(words(f.choices));
    return line + " -d " + quoted(f.help) + "\n";
  };
  for (const CommandSpec& c : specs) {
    if (c.name.empty()) {
      for (const FlagSpec& f : c.flags) s += flag("__fish_use_subcommand", f);
      continue;
    }
    s += "complete -c hone -f -n __fish_use_subcommand -a " + c.name + " -d " + quoted(c.help) + "\n";
    const std::string condition = "__fish_seen_subcommand_from " + c.name;
    if (!c.words.empty())
      s += "complete -c hone -f -n " + quoted(condition) + " -a " + quoted(words(c.words)) + "\n";
    if (c.name == "trtexec") {
      for (const std::string& n : trtexec_flags()) {
        const bool value = n.back() == '=';
        s += "complete -c hone -n " + quoted(condition) + " -l " + n.substr(2, n.size() - (value ? 3 : 2)) +
             (value ? " -r" : "") + "\n";
      }
      continue;
    }
    for (const FlagSpec& f : c.flags) s += flag(condition, f);
  }
  return s;
}

}  // namespace

int completion_command(const Request& request) {
  const std::vector<CommandSpec> specs = command_specs();
  if (request.text == "bash")
    print(bash(specs));
  else if (request.text == "zsh")
    print(zsh(specs));
  else if (request.text == "fish")
    print(fish(specs));
  else
    usage(request.text.empty() ? "no shell is given; the shells are bash, zsh and fish"
                               : "unknown shell '" + request.text + "'; the shells are bash, zsh and fish");
  return 0;
}

}  // namespace hone::cli
