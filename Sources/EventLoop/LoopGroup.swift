// The loops of a daemon: started together, chosen by load, stopped together.

import Glibc

package struct LoopGroup: Sendable {
    package let loops: [EventLoop]

    /// - Parameter count: how many; nil is one per processor.
    /// - Throws: `SystemError` where a loop cannot be started; those before it are stopped.
    package static func start(count: Int?) throws(SystemError) -> LoopGroup {
        var loops: [EventLoop] = []
        for index in 0..<max(1, count ?? sysconf(Int32(_SC_NPROCESSORS_ONLN))) {
            do {
                loops.append(try EventLoop.start(index: index))
            } catch {
                for loop in loops { loop.stop() }
                throw error
            }
        }
        return LoopGroup(loops: loops)
    }

    /// The loop with the fewest connections; the first of equals.
    package var leastBusy: EventLoop {
        var best = loops[0]
        for loop in loops.dropFirst() where loop.connections.current < best.connections.current { best = loop }
        return best
    }

    package func stop() { for loop in loops { loop.stop() } }
}
