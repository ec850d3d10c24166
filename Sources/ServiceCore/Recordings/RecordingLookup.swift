// The recording that answers a call without content, for an explanation.

import DownloadCore
import HTTPWire
import Policies

/// Looks up recordings for explanations. Loop-bound, made for one command.
package struct RecordingLookup {
    private let services: ServiceClient

    package init(_ services: ServiceClient) { self.services = services }

    /// The recording that answers a call, without its content; nil with the reason if there is none.
    package func recording(for call: ServiceCall) async -> (recording: Recording?, reason: String) {
        guard let plan = call.match.endpoint.request.recordings else {
            return (nil, "there is no folder for recordings")
        }
        guard let (key, _) = RecordedCall.key(of: call, plan.rules) else { return (nil, "the request is refused") }
        if plan.rules.matchesBody, !call.isPlain { return (nil, "its content tells recordings apart, and is not here") }
        if let found = await plan.folder.find(key, call.originFields) { return (found.recording, "") }
        let near = await plan.folder.nearest(to: key, call.originFields).map { "; the nearest: \($0)" } ?? ""
        return (nil, "there is no recording of '\(key.request)' in \(plan.folder.path)\(near)")
    }
}

@available(*, unavailable) extension RecordingLookup: Sendable {}
