// The recordings of a configuration's routes: one folder for each service.

import Configuration
import Policies
import ServiceCore

extension SeedTable {
    /// Opens nothing yet: a folder is made with its first recording.
    /// - Returns: nil where no folder is named, or for plans whose requests are never answered.
    /// - Parameter secrets: query items that the service adds.
    func recordings(
        _ configuration: RecordingConfiguration,
        service: String,
        secrets: SecretQuery
    ) -> RecordingPlan? {
        guard let folder = configuration.folder, let opener else { return nil }
        return RecordingPlan(
            source: configuration.source,
            rules: configuration.rules,
            folder: RecordingFolder(path: "\(folder)/\(service)", pool: opener.pool, onTrouble: opener.onTrouble),
            secrets: secrets
        )
    }
}
