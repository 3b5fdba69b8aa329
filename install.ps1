# Give the tool a private Python environment (in PATCHLOCK_CACHE_DIR, default %LOCALAPPDATA%\patchlock\Cache), then hand
# over to it. PATCHLOCK_UV_ARCHIVE, PATCHLOCK_LOCK and PATCHLOCK_MODULE as in install.sh. For PowerShell 5.1 and later.
Set-StrictMode -Version 2.0; $ErrorActionPreference, $ProgressPreference = 'Stop', 'SilentlyContinue'
function Test-Run([string] $Program, [string[]] $Arguments) { # is it there and does it return 0? What it says is logged
    $ErrorActionPreference, $to = 'Continue', @{ LiteralPath = $log; Append = $true } # 5.1 stops at a line of stderr
    try { & $Program @Arguments *>&1 | Out-File @to; $LASTEXITCODE -eq 0 } catch { "$_" | Out-File @to; $false } }
function Write-Note([string] $Text) { [Console]::Error.WriteLine("patchlock: $Text") }
function Get-Cause { [IO.File]::ReadAllLines($log) -match '^error:|Because' -replace '^ *', '; ' | Select-Object -Last 1
    if ("$env:SSL_CERT_FILE" -and -not (Test-Path -LiteralPath $env:SSL_CERT_FILE)) { '; SSL_CERT_FILE is not there' } }
function Test-Complete { try { Test-Path -LiteralPath ([IO.File]::ReadAllText("$tool\complete")) } catch { $false } }
function Get-UvFromIndex { # by a pip of our own
    if (-not ([IO.File]::ReadAllText($lock) -match '(?m)^uv==(.*\\\r?\n)*.*')) { return }
    [IO.File]::WriteAllText("$work\uv.txt", $Matches[0])
    $pip = @('-m pip install --no-user --no-deps --only-binary :all: --require-hashes -r' -split ' ') + "$work\uv.txt"
    $index = $env:PIP_INDEX_URL, $env:UV_DEFAULT_INDEX, $env:UV_INDEX_URL | Where-Object { $_ } | Select-Object -First 1
    $own = "$env:PIP_CERT$env:REQUESTS_CA_BUNDLE$env:CURL_CA_BUNDLE"; if ($index) { $pip += '-i', $index }
    if ($env:SSL_CERT_FILE -and -not $own) { $pip += '--cert', $env:SSL_CERT_FILE } # as pip reads no variables of uv
    foreach ($python in 'py', 'python') {
        if (-not (Test-Run $python @('-m', 'venv', "$work\pip"))) { continue }
        if (Test-Run "$work\pip\Scripts\python.exe" $pip) { return "$work\pip\Scripts\uv.exe" }
    } }
function Get-UvFromArchive { # x86-64, which ARM64 runs too; sha256: known-checksums of astral-sh/setup-uv
    $name, $sum = 'uv-x86_64-pc-windows-msvc.zip', '4c4d49d8738847d9b71ba319e49a5688c93eac0fe6204b1df24e98528dddf39a'
    $from = if ($archive) { $archive } else { "https://github.com/astral-sh/uv/releases/download/0.12.5/$name" }
    if (Test-Path -LiteralPath $from) { Copy-Item -LiteralPath $from $zip }
    else { [IO.File]::WriteAllBytes($zip, (Invoke-WebRequest $from -UseBasicParsing).RawContentStream.ToArray()) }
    if ((Get-FileHash -LiteralPath $zip).Hash -ne $sum) { throw "$from is not $name 0.12.5, sha256 $sum; get it again" }
    Add-Type -Assembly System.IO.Compression.FileSystem; [IO.Compression.ZipFile]::ExtractToDirectory($zip, "$work\uv")
    return "$work\uv\uv.exe" }
function Initialize-Tool { # beside, and renamed into place when complete, as in install.sh
    Write-Note 'preparing (first run only, about 30 s)...'; New-Item -ItemType Directory -Force $work | Out-Null
    foreach ($old in $tool, $log) { if (Test-Path -LiteralPath $old) { Remove-Item -Recurse -Force -LiteralPath $old } }
    $is_recent = (Test-Run 'uv' @('--version')) -and "$(uv --version)" -match '^uv (0\.9|0\.[1-9]\d|[1-9])'
    $uv = if ($archive) { '' } elseif ($is_recent) { 'uv' } else { Get-UvFromIndex }
    if (-not $uv) { Write-Note 'downloading uv...'; $uv = Get-UvFromArchive }
    if (-not (Test-Run $uv '--version')) { throw "${uv} does not run: Defender or Smart App Control may block it" }
    $python, $complete = "$work\env\Scripts\python.exe", "$work\env\complete"; Write-Note 'installing packages...'
    $venv = @('venv --no-config --no-project --relocatable --python cpython>=3.11,<3.15' -split ' ') + "$work\env"
    $sync = @('pip sync --no-config --require-hashes --no-build --compile-bytecode -p' -split ' ') + $python + $lock
    $mark = '-c', 'import sys; open(sys.argv[1], ''w'', encoding=''utf-8'').write(sys._base_executable)', $complete
    if (-not ((Test-Run $uv $venv) -and (Test-Run $uv $sync) -and (Test-Run $python $mark))) { throw "cannot install " +
        "${lock}: check network, disk space and what Windows blocked, or install Python 3.12" }
    try { [IO.Directory]::Move("$work\env", $tool) } # fails when another was faster, and while a virus scanner reads it
    catch { Start-Sleep 3; if (-not (Test-Complete)) { [IO.Directory]::Move("$work\env", $tool) } } }
$lock = $env:PATCHLOCK_LOCK, "$PSScriptRoot\lockfiles\patchlock.txt" | Where-Object { $_ } | Select-Object -First 1
$cache = $env:PATCHLOCK_CACHE_DIR, "$env:LOCALAPPDATA\patchlock\Cache" | Where-Object { $_ } | Select-Object -First 1
$module = $env:PATCHLOCK_MODULE, 'patchlock install' | Where-Object { $_ } | Select-Object -First 1
if (-not (Test-Path -LiteralPath $lock)) { Write-Note "no $lock; use a git clone"; exit 1 }
$tool = "$cache\tool-$((Get-FileHash -LiteralPath $lock).Hash.Substring(0, 16))"
$log, $work, $zip, $archive = "$tool.log", "$tool.$PID", "$tool.$PID\uv.zip", $env:PATCHLOCK_UV_ARCHIVE
$saved = $env:PYTHONPATH, $env:PYTHONHOME, $env:PATCHLOCK_BOOTSTRAP
try {
    $env:PYTHONPATH, $env:PYTHONHOME = $null, $null
    if (-not (Test-Complete)) { try { Initialize-Tool } finally { Remove-Item -LiteralPath $work -Recurse -EA Ignore } }
    if ($env:PATCHLOCK_PREPARE) { [Console]::Out.WriteLine([IO.Path]::GetFileName($tool)); exit 0 } # see install.cmd
    $env:PYTHONPATH, $env:PATCHLOCK_BOOTSTRAP = "$PSScriptRoot\installer", $PSCommandPath
    $ErrorActionPreference = 'Continue'; & "$tool\Scripts\python.exe" -P -m @($module.Split()) @args; exit $LASTEXITCODE
}
catch { Write-Note "$($_.Exception.Message) (see $log$(try { Get-Cause } catch { }))"; exit 1 }
finally { $env:PYTHONPATH, $env:PYTHONHOME, $env:PATCHLOCK_BOOTSTRAP = $saved }
