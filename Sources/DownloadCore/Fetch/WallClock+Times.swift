// The times of a response that comes now, by the clock of the download core.

package import EventLoop
package import HTTPCaching

extension WallClock {
    /// - Parameter requestTime: when it was asked for, Unix seconds; nil where that does not matter.
    package func times(since requestTime: Int64? = nil) -> ResponseTimes {
        let now = now()
        return ResponseTimes(requestTime: requestTime ?? now, responseTime: now, ahead: ahead)
    }
}
