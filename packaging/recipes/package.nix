# SPDX-License-Identifier: MIT
# Nix: nix-build -E 'with import <nixpkgs> {}; callPackage ./package.nix {}'
{ lib, stdenvNoCC, fetchurl, installShellFiles }:
let
  archives = {
    x86_64-linux = {
      url = "@URL@/whit-@VERSION@-linux-x86_64.tar.gz";
      sha256 = "@SHA256:whit-@VERSION@-linux-x86_64.tar.gz@";
    };
    aarch64-linux = {
      url = "@URL@/whit-@VERSION@-linux-aarch64.tar.gz";
      sha256 = "@SHA256:whit-@VERSION@-linux-aarch64.tar.gz@";
    };
  };
in stdenvNoCC.mkDerivation {
  pname = "whit";
  version = "@VERSION@";
  src = fetchurl archives.${stdenvNoCC.hostPlatform.system};
  nativeBuildInputs = [ installShellFiles ];
  installPhase = ''
    runHook preInstall
    install -Dm755 whit $out/bin/whit
    installManPage man/man1/*
    installShellCompletion --cmd whit --bash completions/bash/whit --zsh completions/zsh/_whit \
      --fish completions/fish/whit.fish
    mkdir -p $out/share/doc/whit
    cp -r README.md docs examples $out/share/doc/whit/
    runHook postInstall
  '';
  meta = {
    description = "@SUMMARY@";
    homepage = "@HOME@";
    license = lib.licenses.mit;
    platforms = builtins.attrNames archives;
    mainProgram = "whit";
  };
}
