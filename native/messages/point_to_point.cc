#include "messages/point_to_point.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "core/kernels/copy_bytes.h"
#include "messages/tags.h"

namespace gradlink::messages {
namespace {

/// Short messages that may be pending before sends wait.
constexpr std::size_t kMostOutgoing = 256;

}  // namespace

void Messages::sweep() {
  std::erase_if(outgoing_, [&](Outgoing& message) { return link_.test(&message.request); });
}

bool Messages::idle() {
  sweep();
  return outgoing_.empty();
}

void Messages::send(const void* data, std::size_t count, DType dtype, int destination, int tag,
                    Wait& wait) {
  const std::size_t bytes = count * sizeOf(dtype);
  const bool toSelf = destination == link_.rank();
  const Envelope envelope{count, tag, dtype, bytes > kEagerBytes && !toSelf, 0};
  wait.as(Wait::Kind::message).on(destination);
  if (toSelf) {
    unexpected_.push_back(sentToSelf(destination, envelope, data));
    return;
  }
  link_.listen();
  if (link_.hasLeft(destination)) {
    throw Error(ErrorCode::peerLost,
                "send: rank " + std::to_string(destination) + " has left the communicator")
        .withRank(destination)
        .withOp("send");
  }
  for (sweep(); outgoing_.size() >= kMostOutgoing; sweep()) wait.pause();

  const std::size_t with = envelope.isLong ? 0 : bytes;
  Outgoing message{{}, std::make_unique<std::byte[]>(sizeof(envelope) + with)};
  copyBytes(message.bytes.get(), &envelope, sizeof(envelope));
  copyBytes(message.bytes.get() + sizeof(envelope), data, with);
  link_.isend(message.bytes.get(), sizeof(envelope) + with, destination, kMessageTag,
              &message.request);
  if (!link_.test(&message.request)) outgoing_.push_back(std::move(message));
  if (!envelope.isLong) return;

  // The receiver now counts on this message: giving up ends the communicator.
  wait.as(Wait::Kind::data);
  // A receiver that cannot take it fails the communicator, which ends this wait.
  std::int32_t ready = 0;
  RequestHandle request;
  link_.irecv(&ready, sizeof(ready), destination, kAnswerTag, &request);
  link_.await(&request, wait);
  Batch batch(link_);
  batch.send(data, bytes, destination, kLongTag);
  wait.came();
  batch.wait(wait);
}

bool Messages::fetch(int source) {
  MessageStatus status;
  if (!link_.probe(source == kAnySource ? kAnySourceOfShim : source, kMessageTag, &status)) {
    return false;
  }
  Unexpected message{status.source, {}, std::make_unique<std::byte[]>(status.bytes)};
  link_.receiveProbed(message.data.get(), status.bytes, status);
  std::memcpy(&message.envelope, message.data.get(), sizeof(Envelope));
  const std::size_t bytes = status.bytes - sizeof(Envelope);
  if (bytes > 0) std::memmove(message.data.get(), message.data.get() + sizeof(Envelope), bytes);
  unexpected_.push_back(std::move(message));
  return true;
}

bool Messages::take(Unexpected& message, const Wanted& wanted, const CopyIn* copyIn, Wait& wait,
                    Received& received) {
  const Envelope& envelope = message.envelope;
  if (!wanted.matches(message.source, envelope)) return false;
  if (!wanted.fits(envelope)) {
    link_.failAll(ErrorCode::mismatch, message.source, "receive",
                  misfitText(message.source, envelope, link_.rank(), wanted));
    link_.check("receive");
  }
  const std::size_t bytes = envelope.bytes();
  if (envelope.isLong) {
    wait.as(Wait::Kind::data).on(message.source);
    Batch batch(link_);
    batch.receive(wanted.data, bytes, message.source, kLongTag);
    const std::int32_t ready = 1;
    RequestHandle request;
    link_.isend(&ready, sizeof(ready), message.source, kAnswerTag, &request);
    link_.await(&request, wait);
    wait.came();
    batch.wait(wait);
  } else if (bytes > 0 && copyIn != nullptr) {
    (*copyIn)(wanted.data, message.data.get(), bytes);
  } else if (bytes > 0) {
    copyBytes(wanted.data, message.data.get(), bytes);
  }
  received = {message.source, envelope.count};
  return true;
}

Received Messages::receive(void* data, std::size_t count, DType dtype, int source, int tag,
                           Wait& wait, const CopyIn* copyIn) {
  const Wanted wanted{data, count, dtype, source, tag};
  wait.as(Wait::Kind::message).on(source);
  Received received{};
  // Messages set aside are searched once; after that only new ones.
  for (std::size_t seen = 0;;) {
    for (; seen < unexpected_.size(); ++seen) {
      if (!take(unexpected_[seen], wanted, copyIn, wait, received)) continue;
      unexpected_.erase(unexpected_.begin() + static_cast<std::ptrdiff_t>(seen));
      return received;
    }
    while (!fetch(source)) {
      sweep();
      wait.pause();
    }
  }
}

}  // namespace gradlink::messages
