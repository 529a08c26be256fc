; SPDX-License-Identifier: MIT
; The installer for Windows, compiled by packaging/windows/make, which defines VERSION, TREE (the folder to be installed),
; REMOVE (lines that remove its files), KILOBYTES and OUTPUT. It installs for one user and needs no administrator.
;
;   setup.exe /S [/D=C:\folder]     installs without questions; /D comes last and is not quoted
;   uninstall.exe /S                removes what was installed, and the folder's entry in PATH
Target amd64-unicode
SetCompressor /SOLID lzma
!include LogicLib.nsh
!include WinMessages.nsh

!define ENTRY "Software\Microsoft\Windows\CurrentVersion\Uninstall\whit"

Name "whit ${VERSION}"
OutFile "${OUTPUT}"
InstallDir "$LOCALAPPDATA\Programs\whit"
InstallDirRegKey HKCU "${ENTRY}" "InstallLocation"
RequestExecutionLevel user
ManifestDPIAware true
BrandingText " "
VIProductVersion "${VERSION}.0"
VIAddVersionKey "ProductName" "whit"
VIAddVersionKey "ProductVersion" "${VERSION}"
VIAddVersionKey "FileVersion" "${VERSION}"
VIAddVersionKey "FileDescription" "whit: low-bit language models on an ordinary CPU"
VIAddVersionKey "LegalCopyright" "MIT licence"

PageEx license
    LicenseData "${TREE}/licences/whit.txt"
PageExEnd
Page directory
Page instfiles
UninstPage uninstConfirm
UninstPage instfiles

; Ends with a message where whit runs from the folder: its file could not be replaced.
!macro RefuseIfRunning
    ${If} ${FileExists} "$INSTDIR\whit.exe"
        ClearErrors
        FileOpen $0 "$INSTDIR\whit.exe" a
        ${If} ${Errors}
            MessageBox MB_OK|MB_ICONSTOP "$INSTDIR\whit.exe is in use: end it, then try again." /SD IDOK
            SetErrorLevel 2
            Abort
        ${EndIf}
        FileClose $0
    ${EndIf}
!macroend

; Removes $INSTDIR from the user's PATH, and adds it at the end where WANTED is 1. The value may be longer than a string of
; this installer (1,024 characters), so that it is read and changed in memory; its type stays as it is. $1 key, $2 type,
; $3 bytes, $4 the value between two semicolons, $5 the entry with its own, $6 where that stands, $7 lengths.
!macro ChangePath WANTED
    System::Call 'advapi32::RegCreateKeyExW(p -2147483647, w "Environment", i 0, p 0, i 0, i 0x2001F, p 0, *p .r1, p 0) i .r0'
    ${If} $0 = 0
        StrCpy $2 2
        StrCpy $3 0
        System::Call 'advapi32::RegQueryValueExW(p r1, w "Path", p 0, *i .r2, p 0, *i .r3) i .r0'
        ${If} $0 <> 0
            StrCpy $2 2 ; there is none: REG_EXPAND_SZ
            StrCpy $3 0
        ${EndIf}
        ${If} $2 = 1
        ${OrIf} $2 = 2
            StrLen $7 $INSTDIR
            IntOp $7 $7 * 2
            IntOp $7 $7 + $3
            IntOp $7 $7 + 16
            System::Alloc $7
            Pop $4
            System::Call 'kernel32::lstrcpyW(p r4, w ";")'
            IntPtrOp $6 $4 + 2
            System::Call 'advapi32::RegQueryValueExW(p r1, w "Path", p 0, p 0, p r6, *i r3) i .r0'
            System::Call 'kernel32::lstrcatW(p r4, w ";")'
            StrCpy $5 ";$INSTDIR;"
            ${Do}
                System::Call 'shlwapi::StrStrIW(p r4, w r5) p .r6'
                ${If} $6 P= 0
                    ${ExitDo}
                ${EndIf}
                StrLen $7 $5
                IntOp $7 $7 - 1
                IntOp $7 $7 * 2
                IntPtrOp $7 $6 + $7
                System::Call 'kernel32::lstrlenW(p r7) i .r0'
                IntOp $0 $0 + 1
                IntOp $0 $0 * 2
                System::Call 'kernel32::RtlMoveMemory(p r6, p r7, p r0)'
            ${Loop}
            ; ";" alone or ";;" is an empty value.
            System::Call 'kernel32::lstrlenW(p r4) i .r7'
            ${If} ${WANTED} = 1
                ${If} $7 > 2
                    System::Call 'kernel32::lstrcatW(p r4, w "$INSTDIR")'
                ${Else}
                    System::Call 'kernel32::lstrcpyW(p r4, w ";$INSTDIR")'
                ${EndIf}
                System::Call 'kernel32::lstrcatW(p r4, w ";")'
                System::Call 'kernel32::lstrlenW(p r4) i .r7'
            ${EndIf}
            ${If} $7 > 2
                ; Without the two semicolons, with the zero.
                IntOp $7 $7 - 1
                IntOp $0 $7 * 2
                IntPtrOp $6 $4 + $0
                System::Call '*$6(&i2 0)'
                IntPtrOp $6 $4 + 2
                System::Call 'advapi32::RegSetValueExW(p r1, w "Path", i 0, i r2, p r6, i r0) i .r0'
            ${Else}
                System::Call 'advapi32::RegDeleteValueW(p r1, w "Path")'
            ${EndIf}
            System::Free $4
        ${EndIf}
        System::Call 'advapi32::RegCloseKey(p r1)'
        SendMessage ${HWND_BROADCAST} ${WM_SETTINGCHANGE} 0 "STR:Environment" /TIMEOUT=5000
    ${EndIf}
!macroend

; Files of an earlier version that this one does not have would stay: its own uninstaller goes first.
!macro RemoveEarlier
    ReadRegStr $0 HKCU "${ENTRY}" "InstallLocation"
    ${If} $0 != ""
    ${AndIf} ${FileExists} "$0\uninstall.exe"
        ExecWait '"$0\uninstall.exe" /S _?=$0'
        Delete "$0\uninstall.exe"
        RMDir "$0"
    ${EndIf}
!macroend

Section
    !insertmacro RefuseIfRunning
    !insertmacro RemoveEarlier
    SetOutPath "$INSTDIR"
    ClearErrors
    File /r "${TREE}/*"
    WriteUninstaller "$INSTDIR\uninstall.exe"
    ${If} ${Errors}
        MessageBox MB_OK|MB_ICONSTOP "$INSTDIR cannot be written." /SD IDOK
        SetErrorLevel 2
        Abort
    ${EndIf}
    WriteRegStr HKCU "${ENTRY}" "DisplayName" "whit"
    WriteRegStr HKCU "${ENTRY}" "DisplayVersion" "${VERSION}"
    WriteRegStr HKCU "${ENTRY}" "Publisher" "the whit authors"
    WriteRegStr HKCU "${ENTRY}" "DisplayIcon" "$INSTDIR\whit.exe"
    WriteRegStr HKCU "${ENTRY}" "InstallLocation" "$INSTDIR"
    WriteRegStr HKCU "${ENTRY}" "UninstallString" '"$INSTDIR\uninstall.exe"'
    WriteRegStr HKCU "${ENTRY}" "QuietUninstallString" '"$INSTDIR\uninstall.exe" /S'
    WriteRegDWORD HKCU "${ENTRY}" "EstimatedSize" ${KILOBYTES}
    WriteRegDWORD HKCU "${ENTRY}" "NoModify" 1
    WriteRegDWORD HKCU "${ENTRY}" "NoRepair" 1
    !insertmacro ChangePath 1
SectionEnd

Section "un."
    !insertmacro RefuseIfRunning
    SetOutPath "$TEMP" ; a folder in use cannot be removed
    !include "${REMOVE}"
    Delete "$INSTDIR\uninstall.exe"
    RMDir "$INSTDIR"
    DeleteRegKey HKCU "${ENTRY}"
    !insertmacro ChangePath 0
SectionEnd
