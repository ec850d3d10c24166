// Bytes of an answer that go from the origin's socket to the client's without a copy through this process.

import EventLoop

extension Connection {
    /// The loop's pipe to the client; nil while something else is to be sent first, and where there is none.
    var freePipe: SocketPipe? {
        phase == .answering && !isBlocked && output.isEmpty && transport.takesPipes ? context.pipe : nil
    }

    /// Sends what is in the pipe, and queues what the socket does not take. The connection may end by it.
    func pass(_ count: Int, outOf pipe: SocketPipe) {
        var left = count
        var last = IOResult.wouldBlock
        repeat {
            last = transport.empty(pipe, count: left)
            left -= last.count
        } while left > 0 && last.count > 0
        noteWritten(count - left)
        context.counters.add(.bytesMoved, UInt64(count - left))
        guard left > 0 else { return }
        let rest = pipe.read(left)
        // Also where it failed: what is queued did not go out, for the access log.
        output.append(rest)
        if rest.count < left { context.dropPipe() }
        guard last == .wouldBlock, rest.count == left else { return clientLeft() }
        isBlocked = true
        waitingSince = Monotonic.coarse()
        updateInterest()
    }
}
