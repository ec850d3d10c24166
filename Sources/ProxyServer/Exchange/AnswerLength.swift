// The length of an answer's body, and the error for a client that has gone.

/// How long the body of an answer is.
package enum AnswerLength: Sendable, Equatable {
    /// No body.
    case none
    /// So many bytes; fewer cut the connection, more are dropped.
    case known(Int64)
    /// Chunked to HTTP/1.1 clients, up to the end of the connection to HTTP/1.0 clients.
    case unknown
}

/// The client has left, or the answer was cut: nothing more can be sent.
package struct ClientGone: Error, Sendable, Equatable {
    package init() {}
}
