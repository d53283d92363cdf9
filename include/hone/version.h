// Versions of the program, the IR and the file formats.
#pragma once

namespace hone {

inline constexpr const char* kVersion = "0.1.0";
/// The one ai.onnx opset of the IR: the newest that PyPI's onnx 1.23 defines. Import upgrades older models to
/// it.
inline constexpr int kIrOpset = 28;
/// Newest ONNX IR version that the reader knows.
inline constexpr int kOnnxIrVersion = 14;
/// Engine file format; a file of another major version is refused with a typed verdict.
inline constexpr int kEngineFormatVersion = 1;

}  // namespace hone
