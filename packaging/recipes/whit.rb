# SPDX-License-Identifier: MIT
# Homebrew on Linux: brew install ./whit.rb
class Whit < Formula
  desc "Low-bit language models on an ordinary CPU"
  homepage "@HOME@"
  version "@VERSION@"
  license "MIT"
  depends_on :linux

  on_intel do
    url "@URL@/whit-@VERSION@-linux-x86_64.tar.gz"
    sha256 "@SHA256:whit-@VERSION@-linux-x86_64.tar.gz@"
  end
  on_arm do
    url "@URL@/whit-@VERSION@-linux-aarch64.tar.gz"
    sha256 "@SHA256:whit-@VERSION@-linux-aarch64.tar.gz@"
  end

  def install
    bin.install "whit"
    man1.install Dir["man/man1/*"]
    bash_completion.install "completions/bash/whit"
    zsh_completion.install "completions/zsh/_whit"
    fish_completion.install "completions/fish/whit.fish"
    doc.install "docs"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/whit --version")
    assert_match "Once", shell_output("#{bin}/whit run -n 8 -p Once </dev/null")
  end
end
