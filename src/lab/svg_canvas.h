// SvgCanvas: the marks that plots are drawn with, and the style that they share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace outrider::lab {

enum class Anchor { kStart, kMiddle, kEnd };

struct LegendEntry {
  std::string name;
  int colour = 0;
  bool dashed = false;
  bool faint = false;
};

// Coordinates are in units of the drawing, y downwards. Colours are 0 to 4, taken modulo; those of
// lines may be left out (-1).
class SvgCanvas {
 public:
  // `style`: "", "strong", "muted".
  void text(double x, double y, Anchor anchor, std::string_view what, std::string_view style = "");
  // Turned by a quarter to the left.
  void upright_text(double x, double y, std::string_view what);
  // `style`: "grid", "axis", "reference", "whisker".
  void line(double x1, double y1, double x2, double y2, std::string_view style, int colour = -1);
  // Joined points, "x,y x,y ...".
  void path(const std::string& points, int colour);
  // `says`: what the pointer is told.
  void dot(double x, double y, int colour, std::string_view says);
  void bar(double x, double y, double width, double height, int colour, std::string_view says,
           bool faint = false);
  // A row of names beginning at (x, y), in further lines where `right` is reached. Returns the y of
  // the last line.
  double legend(double x, double y, double right, const std::vector<LegendEntry>& entries);

  // The whole drawing. `title` is what a screen reader says of it.
  std::string finish(std::string_view title, double width, double height) const;

  // How wide a text of the usual size is, about. Counts characters, not bytes.
  static double width_of(std::string_view text);

 private:
  std::string body_;
};

// A coordinate: one digit behind the point is a tenth of a pixel.
std::string at(double value);

}  // namespace outrider::lab
