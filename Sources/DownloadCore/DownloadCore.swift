// The room DownloadCore.
