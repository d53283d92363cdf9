// The engine file: one header, a manifest, the plan (FlatBuffers), the optimised graph (IR text), the weights
// (memory-mapped), then records. docs/engine_format.md is byte by byte.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace hone::engine {

struct FileInfo {
  std::string body_hash;      ///< XXH3-128 of the body, hex: the engine's identity
  std::string manifest_json;  ///< readable without loading anything else
  int64_t file_bytes = 0, weights_bytes = 0, plan_bytes = 0, graph_bytes = 0;
  int format_version = 0;
};

/// Serialises to bytes; the same engine gives the same bytes always.
std::string serialize(const Engine& engine);
/// Writes by rename. Errors: kInvalidArgument when the folder cannot be written.
void save(const Engine& engine, const std::string& path);

struct LoadOptions {
  bool verify_weights = false;  ///< recompute the body hash (reads the whole file)
};
/// Maps the file; constants are views. Every length, bound, id and enum is checked before use.
/// Errors: kCorruptEngine (what, where), kUnsupported (format version). Whether the target is present is the
/// runtime's check.
std::unique_ptr<Engine> load(const std::string& path, const LoadOptions& options, FileInfo* info = nullptr);
/// The same from bytes that the caller keeps alive through `owner`.
std::unique_ptr<Engine> load_bytes(const void* data, size_t bytes, std::shared_ptr<const void> owner,
                                   const LoadOptions& options, FileInfo* info = nullptr);
/// Header and manifest alone.
FileInfo read_info(const std::string& path);
/// Does the file start like an engine?
bool is_engine_file(const std::string& path);

/// Records are appended after the body: JSON documents that name the body hash.
void append_record(const std::string& path, const std::string& json);
std::vector<std::string> read_records(const std::string& path);

}  // namespace hone::engine
