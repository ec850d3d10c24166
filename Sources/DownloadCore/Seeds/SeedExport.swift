// Stored responses on their way into a seed folder: which of them anybody may see, and what became of them.

package import CacheStore
import HTTPCaching
import HTTPWire

/// What an export came to.
package struct SeedExport: Sendable, Equatable {
    /// Responses in the folder now.
    package var written = 0
    /// Of their bodies.
    package var bytes: Int64 = 0
    /// Responses that a seed cannot be, or that have gone meanwhile.
    package var skipped = 0
    package var failed = 0
    /// Why the first one failed.
    package var firstError: String?

    package init() {}

    /// Writes what a core has stored into a folder.
    /// - Parameters:
    ///   - services: whose responses the tiers behind memory are asked for.
    ///   - only: the service whose responses memory is asked for; nil for all.
    ///   - isEnding: asked before each response; true leaves out the rest.
    package init(
        of core: DownloadCore,
        services: [String],
        only: String?,
        to writer: SeedWriter,
        isEnding: @Sendable () -> Bool = { false }
    ) async {
        await core.forEachStored(services: services, only: only) { response in
            if isEnding() { return false }
            guard let response, Self.isFit(response), core.invalidations.verdict(response) != .gone else {
                skipped += 1
                return true
            }
            do {
                try await writer.write(response)
            } catch {
                failed += 1
                firstError = firstError ?? "\(response.key): \(error)"
            }
            return true
        }
        written = writer.tally.written
        bytes = writer.tally.bytes
    }

    /// Whether a response may answer everybody who asks for its URL, as a seed does: not one to a request with
    /// Authorization, and none that depends on more than the URL, such as the answer to a POST.
    private static func isFit(_ response: StoredResponse) -> Bool {
        guard response.head.requestMethod == .get, !response.head.hadAuthorization else { return false }
        // Who asks through an endpoint asks by the URL alone.
        return response.key.extras?.split(separator: "\n").allSatisfy { $0.hasPrefix("endpoint ") } ?? true
    }
}
