#include "base/status.h"

namespace outrider {

std::string_view status_code_name(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid_argument";
    case StatusCode::kNotFound:
      return "not_found";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kResourceExhausted:
      return "resource_exhausted";
    case StatusCode::kCancelled:
      return "cancelled";
    case StatusCode::kDataLoss:
      return "data_loss";
    case StatusCode::kInternal:
      return "internal";
  }
  return "unknown";
}

Status Status::with_context(std::string_view context) const {
  if (ok()) return *this;
  Status status = *this;
  status.message_ = std::string(context) + ": " + message_;
  if (field_at_ != kNotNamed) status.field_at_ += status.message_.size() - message_.size();
  return status;
}

Status Status::in_field(std::string field) const {
  if (ok()) return *this;
  Status status = *this;
  status.message_ = field + ": " + message_;
  status.field_ = std::move(field);
  status.field_at_ = 0;
  return status;
}

Status Status::about(std::string field) const {
  if (ok()) return *this;
  Status status = *this;
  status.field_ = std::move(field);
  status.field_at_ = kNotNamed;
  return status;
}

Status Status::over(const Excess& excess) const {
  if (ok()) return *this;
  Status status = *this;
  status.excess_ = excess;
  return status;
}

Status Status::spelled(std::string spelling) const {
  if (ok()) return *this;
  Status status = *this;
  status.message_ = message_with(spelling);
  status.field_ = std::move(spelling);
  return status;
}

std::string Status::message_with(std::string_view spelling) const {
  if (field_at_ == kNotNamed) return message_;
  return std::string(message_).replace(field_at_, field_.size(), spelling);
}

Status refused(StatusCode code, std::string field, std::string_view what) {
  Status status(code, field + " " + std::string(what));
  status.field_ = std::move(field);
  status.field_at_ = 0;
  return status;
}

Status refused(std::string field, std::string_view what) {
  return refused(StatusCode::kInvalidArgument, std::move(field), what);
}

Status wrong_value(std::string field, std::string_view value, std::string_view wanted) {
  return refused(std::move(field),
                 "is " + std::string(value) + ", but must be " + std::string(wanted));
}

Status invalid_argument(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}
Status not_found(std::string message) { return Status(StatusCode::kNotFound, std::move(message)); }
Status unsupported(std::string message) {
  return Status(StatusCode::kUnsupported, std::move(message));
}
Status resource_exhausted(std::string message) {
  return Status(StatusCode::kResourceExhausted, std::move(message));
}
Status cancelled(std::string message) { return Status(StatusCode::kCancelled, std::move(message)); }
Status data_loss(std::string message) { return Status(StatusCode::kDataLoss, std::move(message)); }
Status internal_error(std::string message) {
  return Status(StatusCode::kInternal, std::move(message));
}

}  // namespace outrider
