// Services over a scripted transport, and what their hooks are told.

import Drydock
import DrydockServices
import DrydockTesting
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

/// A service that reads a text.
struct Greeting: Resource {
    typealias Model = String
    var path = "/hello"
    var method = HTTPRequest.Method.get
    var body: RequestBody?
    var headerFields = HTTPFields()
    var parksWithoutResponse = false
    var options = DownloadOptions()
    var endpoint: Endpoint { Endpoint(path, method: method, headerFields: headerFields, body: body) }
    var format: ResponseFormat<String> { .text }
}

/// Another one, whose name begins with that of the first.
struct GreetingOfMany: Resource {
    typealias Model = String
    var endpoint: Endpoint { "/hello" }
    var format: ResponseFormat<String> { .text }
}

/// Everything that hooks were told, in order.
final class Told: Sendable {
    private let lines = Monitor<[String]>([])
    var all: [String] { lines.read { $0 } }
    func add(_ line: String) { lines.update { $0.append(line) } }

    var hooks: ServiceHooks {
        var hooks = ServiceHooks()
        hooks.onStart = { [self] call, attempt in add("start \(attempt) of \(call.name)") }
        hooks.onSent = { [self] _, progress in add("sent \(progress.completed)") }
        hooks.onReceived = { [self] _, progress in add("received \(progress.completed)") }
        hooks.onRetry = { [self] _, wait, _ in add("retry after \(wait)") }
        hooks.onPark = { [self] _, _ in add("park") }
        hooks.onSuccess = { [self] _, response in add("success \(response.status.code)") }
        hooks.onFailure = { [self] _, error in add("failure \(error.name)") }
        hooks.onEnd = { [self] _ in add("end") }
        hooks.onIdle = { [self] in add("idle") }
        return hooks
    }
}

extension ScriptedAnswer {
    /// The origin cannot be reached.
    static var noResponse: ScriptedAnswer {
        get async {
            let port = try? ClosedPort()
            let manager = makeManager()
            let url = URL(string: "http://127.0.0.1:\(port?.number ?? 1)/")
            var error = DownloadError.closed
            do throws(DownloadError) {
                if let url { _ = try await manager.download(url) }
            } catch let failure {
                error = failure
            }
            await manager.close()
            return .failure(error)
        }
    }
}

/// A manager over a scripted transport.
func makeServices(
    _ told: Told? = nil,
    clock: any Clock<Duration> = ContinuousClock(),
    _ change: (inout ServiceManager.Configuration) -> Void = { _ in }
) -> (ServiceManager, ScriptedTransport) {
    let transport = ScriptedTransport()
    var configuration = ServiceManager.Configuration()
    configuration.base = URL(string: "https://api.test")
    configuration.clock = clock
    if let told { configuration.hooks = told.hooks }
    change(&configuration)
    return (ServiceManager(transport: transport, configuration: configuration), transport)
}

/// The kinds of a call's events, in order; of several progresses in a row the last, since nobody listens before the end.
func kinds<Model>(_ call: ServiceCall<Model>) async -> [String] {
    _ = try? await call.value
    var kinds: [String] = []
    for await event in call.events {
        switch event {
        case .started(let attempt): kinds.append("started \(attempt)")
        case .sent: kinds.append("sent")
        case .received: kinds.append("received")
        case .stale: kinds.append("stale")
        case .retrying: kinds.append("retrying")
        case .parked: kinds.append("parked")
        case .succeeded: kinds.append("succeeded")
        case .failed(let error): kinds.append("failed \(error.name)")
        case .ended: kinds.append("ended")
        }
    }
    return kinds
}
