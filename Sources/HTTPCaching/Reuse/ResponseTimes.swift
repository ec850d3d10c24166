// When a response was asked for and when it came: what its age is worked out from.

/// The `request_time` and `response_time` of RFC 9111 section 4.2.3, by one clock, in Unix seconds.
package struct ResponseTimes: Sendable, Equatable {
    package var requestTime: Int64
    package var responseTime: Int64
    /// Seconds by which both are ahead of the system's clock; not 0 where the clock was moved.
    package var ahead: Int64

    package init(requestTime: Int64, responseTime: Int64, ahead: Int64 = 0) {
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.ahead = ahead
    }

    /// The times of what comes in the moment in which it is asked for.
    package init(at time: Int64, ahead: Int64 = 0) {
        self.init(requestTime: time, responseTime: time, ahead: ahead)
    }
}
