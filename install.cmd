@echo off
rem Prepares patchlock and starts it, under any execution policy: install.cmd APP [options]
goto prepare
:start
"%PATCHLOCK_PYTHON%" -P -m %PATCHLOCK_STARTS% %*
goto ended
:prepare
rem Written by patchlock.model.launchers.bootstrap, as the launchers are.
setlocal DisableDelayedExpansion
set "PATCHLOCK_AT=%~dp0install.ps1"
set "PATCHLOCK_BOOTSTRAP=%~dp0install.ps1"
set "PYTHONPATH=%~dp0installer"
set "PYTHONHOME="
set "PATCHLOCK_TOOL="
set "PSModulePath="
set "PATCHLOCK_PREPARE=1"
for /f "delims=" %%t in ('powershell -NoProfile -ExecutionPolicy Bypass -File "%%PATCHLOCK_AT%%" ^<nul') do set "PATCHLOCK_TOOL=%%t"
set "PATCHLOCK_PREPARE="
set "PATCHLOCK_PYTHON=%LOCALAPPDATA%\patchlock\Cache\%PATCHLOCK_TOOL%\Scripts\python.exe"
if defined PATCHLOCK_CACHE_DIR set "PATCHLOCK_PYTHON=%PATCHLOCK_CACHE_DIR%\%PATCHLOCK_TOOL%\Scripts\python.exe"
if not defined PATCHLOCK_TOOL set "PATCHLOCK_CODE=1"& goto end
set "PATCHLOCK_STARTS=patchlock install"
if defined PATCHLOCK_MODULE set "PATCHLOCK_STARTS=%PATCHLOCK_MODULE%"
set "PATCHLOCK_MODULE="
set "PATCHLOCK_LOCK="
goto start
:ended
set "PATCHLOCK_CODE=%ERRORLEVEL%"
:end
if "%PATCHLOCK_CODE%"=="0" exit /b 0
set "PATCHLOCK_FROM=%CMDCMDLINE:"=%"
if /i "%PATCHLOCK_FROM:~-12%"=="install.cmd " pause
exit /b %PATCHLOCK_CODE%
