#include "backends/cpu/kernels/conv.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"

namespace hone::cpu {
namespace {

// Calls f(offset in ONNX weights, offset in packed weights) for every weight.
template <typename F>
void for_each_weight(Isa isa, const ConvShape& s, F&& f) {
  const int64_t nr = tile_kernels(isa).nr;
  const int64_t icg = s.ic / s.groups, ocg = s.oc / s.groups, taps = s.taps();
  const int64_t panel_floats = taps * icg * nr;
  for (int64_t g = 0; g < s.groups; ++g)
    for (int64_t o = 0; o < ocg; ++o) {
      const int64_t panel = (g * ceil_div(ocg, nr) + o / nr) * panel_floats + o % nr;
      const int64_t row = (g * ocg + o) * icg * taps;
      for (int64_t c = 0; c < icg; ++c)
        for (int64_t t = 0; t < taps; ++t) f(row + c * taps + t, panel + (t * icg + c) * nr);
    }
}

}  // namespace

int64_t packed_conv_floats(Isa isa, const ConvShape& s) {
  const int64_t nr = tile_kernels(isa).nr;
  return s.groups * ceil_div(s.oc / s.groups, nr) * nr * s.taps() * (s.ic / s.groups);
}

void pack_conv_weights(Isa isa, const ConvShape& s, const float* weights, float* packed) {
  std::fill_n(packed, packed_conv_floats(isa, s), 0.0F);
  for_each_weight(isa, s, [&](int64_t from, int64_t to) { packed[to] = weights[from]; });
}

void unpack_conv_weights(Isa isa, const ConvShape& s, const float* packed, float* weights) {
  for_each_weight(isa, s, [&](int64_t from, int64_t to) { weights[from] = packed[to]; });
}

// An output pixel: where its first tap lies in the input, in pixels (perhaps outside), and which pixel it is.
struct Conv::Pixel {
  int64_t image, oz, oy, ox;
};

struct Conv::Scratch {
  const float** sources;
  float** dst;
  int64_t* ids;
  float* zeros;
  float* strip;
  int64_t bytes;
};

Conv::Scratch Conv::scratch(void* base) const {
  const ConvShape& s = shape_;
  Carver carver(base);
  Scratch out{};
  const int64_t taps = strips_ ? s.kernel[0] * s.kernel[1] : s.taps();
  out.sources = carver.take<const float*>(block_rows_ * taps);
  out.dst = carver.take<float*>(block_rows_);
  out.ids = carver.take<int64_t>(block_rows_);
  out.zeros = carver.take<float>(strips_ ? 0 : s.ic);
  const int64_t lines = (block_lines_ - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1;
  const int64_t width = (s.out[2] - 1) * s.stride[2] + s.kernel[2];
  out.strip = carver.take<float>(strips_ ? s.kernel[0] * lines * width * s.ic : 0);
  out.bytes = carver.used();
  return out;
}

Conv::Conv(Isa isa, const ConvShape& shape) : kernels_(&tile_kernels(isa)), shape_(shape) {
  ConvShape& s = shape_;
  if (s.src_stride == 0) s.src_stride = s.ic;
  if (s.dst_stride == 0) s.dst_stride = s.oc;
  const int64_t icg = s.ic / s.groups, ocg = s.oc / s.groups;
  group_panels_ = ceil_div(ocg, kernels_->nr);
  const int64_t rows = s.batch * s.out_pixels();

  for (int64_t z = 0; z < s.kernel[0]; ++z)
    for (int64_t y = 0; y < s.kernel[1]; ++y)
      for (int64_t x = 0; x < s.kernel[2]; ++x)
        tap_offsets_.push_back(
            ((z * s.dilation[0] * s.in[1] + y * s.dilation[1]) * s.in[2] + x * s.dilation[2]) * s.src_stride);

  // With few channels a tap is too short to pay for its pointers; a kernel row of a padded strip is long
  // enough.
  strips_ = s.groups == 1 && s.ic < 16 && s.kernel[2] > 1 && s.dilation[2] == 1 && s.out_pixels() > 0;

  const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(s.oc) *
                       static_cast<double>(icg) * static_cast<double>(s.taps());
  const int64_t a_floats = s.batch * (s.in_pixels() * s.ic + s.out_pixels() * s.oc);
  const int64_t b_floats = s.oc * icg * s.taps();
  const int64_t units = strips_ ? s.batch * s.out[0] * s.out[1] : ceil_div(rows, kernels_->mr);
  split_ = split_work(1, units, s.groups * group_panels_, flops, a_floats, b_floats);

  // A block's tables and the input it reads share L2 with a panel of weights.
  const int64_t unit_rows = strips_ ? s.out[2] : kernels_->mr;
  const int64_t chunk_units = ceil_div(split_.rows.count, split_.rows.parts);
  const int64_t l2_floats = static_cast<int64_t>(cache_sizes().l2_bytes) / 4;
  const int64_t taps = strips_ ? s.kernel[0] * s.kernel[1] : s.taps();
  const int64_t row_floats = s.ic * s.stride[1] * s.stride[2] + 2 * taps + 4;
  const int64_t fit_rows = std::min<int64_t>(4096, l2_floats / 2 / row_floats);
  const int64_t block_units = std::clamp<int64_t>(fit_rows / std::max<int64_t>(1, unit_rows), 1, chunk_units);
  block_rows_ = std::max<int64_t>(1, std::min(rows, block_units * unit_rows));
  block_lines_ = strips_ ? std::min(block_units, s.out[1]) : 1;
  worker_bytes_ = scratch(nullptr).bytes;
}

Conv::Pixel Conv::pixel_at(int64_t row) const {
  const ConvShape& s = shape_;
  Pixel p{};
  p.ox = row % s.out[2];
  row /= s.out[2];
  p.oy = row % s.out[1];
  row /= s.out[1];
  p.oz = row % s.out[0];
  p.image = row / s.out[0];
  return p;
}

void Conv::next(Pixel& p) const {
  if (++p.ox < shape_.out[2]) return;
  p.ox = 0;
  if (++p.oy < shape_.out[1]) return;
  p.oy = 0;
  if (++p.oz < shape_.out[0]) return;
  p.oz = 0;
  ++p.image;
}

void Conv::point_tile(const ConvArgs& args, const Scratch& scratch, const Pixel* pixels, int64_t rows,
                      const float** out) const {
  const ConvShape& s = shape_;
  int64_t base[kMaxTileRows];
  int64_t first[kMaxTileRows][3];
  bool inside = true;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t o[3] = {pixels[r].oz, pixels[r].oy, pixels[r].ox};
    for (int d = 0; d < 3; ++d) {
      first[r][d] = o[d] * s.stride[d] - s.pad[d];
      inside = inside && first[r][d] >= 0 && first[r][d] + (s.kernel[d] - 1) * s.dilation[d] < s.in[d];
    }
    base[r] = (((pixels[r].image * s.in[0] + first[r][0]) * s.in[1] + first[r][1]) * s.in[2] + first[r][2]) *
              s.src_stride;
  }
  if (inside) {
    for (const int64_t offset : tap_offsets_)
      for (int64_t r = 0; r < rows; ++r) *out++ = args.src + base[r] + offset;
    return;
  }
  size_t tap = 0;
  for (int64_t z = 0; z < s.kernel[0]; ++z)
    for (int64_t y = 0; y < s.kernel[1]; ++y)
      for (int64_t x = 0; x < s.kernel[2]; ++x, ++tap)
        for (int64_t r = 0; r < rows; ++r) {
          const auto in_range = [&](int d, int64_t k) {
            const int64_t at = first[r][d] + k * s.dilation[d];
            return at >= 0 && at < s.in[d];
          };
          const bool real = in_range(0, z) && in_range(1, y) && in_range(2, x);
          *out++ = real ? args.src + base[r] + tap_offsets_[tap] : scratch.zeros;
        }
}

void Conv::run_panels(const ConvArgs& args, const RowBlock& block, int64_t panel0, int64_t panel1) const {
  const ConvShape& s = shape_;
  const int64_t icg = s.ic / s.groups, ocg = s.oc / s.groups;
  const int64_t panel_floats = s.taps() * icg * kernels_->nr;
  for (int64_t p = panel0; p < panel1;) {
    const int64_t group = p / group_panels_;
    PanelRun run;
    run.panels = args.weights + p * panel_floats;
    run.first = p % group_panels_;
    run.count = std::min(group_panels_ - run.first, panel1 - p);
    run.n = ocg;
    run.column_base = group * ocg;
    run.k_offset = group * icg;
    run_block(*kernels_, block, run, args.epilogue, walk);
    p += run.count;
  }
}

void Conv::run_rows(const ConvArgs& args, const Scratch& s, int64_t row0, int64_t row1, int64_t panel0,
                    int64_t panel1) const {
  std::memset(s.zeros, 0, static_cast<size_t>(shape_.ic) * sizeof(float));
  RowBlock block;
  block.n_taps = shape_.taps();
  block.run = shape_.ic / shape_.groups;
  block.sources = s.sources;
  block.dst = s.dst;
  block.ids = s.ids;
  Pixel pixel = pixel_at(row0);
  for (int64_t at = row0; at < row1; at += block_rows_) {
    block.rows = std::min(block_rows_, row1 - at);
    const EvenSplit tiles = block.tiles(kernels_->mr);
    for (int64_t t = 0; t < tiles.parts; ++t) {
      Pixel pixels[kMaxTileRows];
      const int64_t r0 = tiles.begin(t), rows = tiles.begin(t + 1) - r0;
      for (int64_t r = 0; r < rows; ++r) {
        pixels[r] = pixel;
        next(pixel);
        s.ids[r0 + r] = at + r0 + r;
        s.dst[r0 + r] = args.dst + (at + r0 + r) * shape_.dst_stride;
      }
      point_tile(args, s, pixels, rows, s.sources + r0 * block.n_taps);
    }
    run_panels(args, block, panel0, panel1);
  }
}

void Conv::run_lines(const ConvArgs& args, const Scratch& scratch, int64_t line0, int64_t line1,
                     int64_t panel0, int64_t panel1) const {
  const ConvShape& s = shape_;
  const int64_t width = (s.out[2] - 1) * s.stride[2] + s.kernel[2];  // padded
  const int64_t first_x = -s.pad[2];
  // Of a padded line, [left, right) comes from the input.
  const int64_t left = std::clamp<int64_t>(-first_x, 0, width);
  const int64_t right = std::clamp<int64_t>(s.in[2] - first_x, left, width);
  RowBlock block;
  block.n_taps = s.kernel[0] * s.kernel[1];
  block.run = s.kernel[2] * s.ic;
  block.sources = scratch.sources;
  block.dst = scratch.dst;
  block.ids = scratch.ids;

  for (int64_t line = line0; line < line1;) {
    const int64_t slice = line / s.out[1], y0 = line % s.out[1];
    const int64_t image = slice / s.out[0], oz = slice % s.out[0];
    const int64_t lines = std::min({block_lines_, s.out[1] - y0, line1 - line});
    const int64_t strip_lines = (lines - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1;
    const int64_t line_floats = width * s.ic;

    float* to = scratch.strip;
    for (int64_t z = 0; z < s.kernel[0]; ++z) {
      const int64_t iz = oz * s.stride[0] - s.pad[0] + z * s.dilation[0];
      for (int64_t l = 0; l < strip_lines; ++l, to += line_floats) {
        const int64_t iy = y0 * s.stride[1] - s.pad[1] + l;
        if (iz < 0 || iz >= s.in[0] || iy < 0 || iy >= s.in[1]) {
          std::fill_n(to, line_floats, 0.0F);
          continue;
        }
        const float* from = args.src + ((image * s.in[0] + iz) * s.in[1] + iy) * s.in[2] * s.src_stride;
        std::fill_n(to, left * s.ic, 0.0F);
        if (s.src_stride == s.ic) {
          std::copy_n(from + (first_x + left) * s.ic, (right - left) * s.ic, to + left * s.ic);
        } else {
          for (int64_t x = left; x < right; ++x)
            std::copy_n(from + (first_x + x) * s.src_stride, s.ic, to + x * s.ic);
        }
        std::fill_n(to + right * s.ic, (width - right) * s.ic, 0.0F);
      }
    }

    block.rows = lines * s.out[2];
    const int64_t row0 = line * s.out[2];
    const EvenSplit tiles = block.tiles(kernels_->mr);
    for (int64_t t = 0; t < tiles.parts; ++t) {
      const int64_t r0 = tiles.begin(t), r1 = tiles.begin(t + 1);
      const float** out = scratch.sources + r0 * block.n_taps;
      for (int64_t z = 0; z < s.kernel[0]; ++z)
        for (int64_t y = 0; y < s.kernel[1]; ++y)
          for (int64_t r = r0; r < r1; ++r)
            *out++ = scratch.strip +
                     (z * strip_lines + r / s.out[2] * s.stride[1] + y * s.dilation[1]) * line_floats +
                     r % s.out[2] * s.stride[2] * s.ic;
      for (int64_t r = r0; r < r1; ++r) {
        scratch.ids[r] = row0 + r;
        scratch.dst[r] = args.dst + (row0 + r) * s.dst_stride;
      }
    }
    run_panels(args, block, panel0, panel1);
    line += lines;
  }
}

void Conv::run_chunk(const ConvArgs& args, int64_t chunk, int worker) const {
  const int64_t row_part = chunk % split_.rows.parts, panel_part = chunk / split_.rows.parts;
  const int64_t unit0 = split_.rows.begin(row_part), unit1 = split_.rows.begin(row_part + 1);
  const int64_t panel0 = split_.panels.begin(panel_part), panel1 = split_.panels.begin(panel_part + 1);
  const Scratch s = scratch(static_cast<char*>(args.workspace) + worker * worker_bytes_);
  if (strips_) {
    run_lines(args, s, unit0, unit1, panel0, panel1);
    return;
  }
  const int64_t rows = shape_.batch * shape_.out_pixels();
  run_rows(args, s, unit0 * kernels_->mr, std::min(rows, unit1 * kernels_->mr), panel0, panel1);
}

void Conv::run(const ConvArgs& args, ThreadPool& pool, int max_workers) const {
  if (shape_.batch * shape_.out_pixels() * shape_.oc == 0) return;
  pool.parallel_for(
      n_chunks(), [&](int64_t chunk, int worker) { run_chunk(args, chunk, worker); }, max_workers);
}

}  // namespace hone::cpu
