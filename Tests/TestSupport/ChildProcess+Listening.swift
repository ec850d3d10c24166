// A server that a test starts, until it accepts connections.

extension ChildProcess {
    /// Waits until the server accepts on a port of 127.0.0.1, or has ended.
    /// - Parameters:
    ///   - name: the server's, for the message.
    ///   - errors: the file of its standard error.
    /// - Throws: it does not listen, with what it wrote to standard error.
    package func waitUntilListening(on port: Int, _ name: String, errors: String) throws {
        var listens = false
        _ = blockUntil {
            listens = (try? RawClient(port: port)) != nil
            return listens || !isRunning
        }
        guard !listens else { return }
        throw TestSupportError.failed("\(name) does not listen on \(port)\n\(readText(errors))")
    }
}
