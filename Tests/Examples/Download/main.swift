// The example of Sources/Drydock/Drydock.docc/Downloading.md and of the README: downloads what it is told, and tells of it.

import Drydock
import Foundation

for url in CommandLine.arguments.dropFirst().compactMap({ URL(string: $0) }) {
    do {
        for try await event in DownloadManager.shared.events(for: url) {
            if case .progress(let progress) = event { print("\(progress.completed) bytes so far") }
            if case .finished(let result) = event { print("\(result.outcome): \(result.data.count) bytes of \(url)") }
        }
    } catch { print(error) }
}
