# SPDX-License-Identifier: MIT
# Packages for people without a compiler; included by the Makefile.
#
#   make deb             build-package/packages/*.deb: whit, libwhit0, libwhit-dev (Debian, Ubuntu)
#   make archive         build-static/packages/whit-VERSION-linux-ARCHITECTURE.tar.gz: the static program, any Linux
#   make archive-arm64   the same for 64-bit Arm, by a cross compiler, in build-static-aarch64/packages, and a package for
#                        Debian, tested by qemu
#   make wheel-arm64     the wheel for 64-bit Arm, in build-aarch64, with the libraries of Debian's arm64 packages
#   make archive-riscv64  the same for 64-bit RISC-V, in build-static-riscv64/packages, and a package for Debian
#   make release         build-release: these, RPM, container image, wheel, bill of materials, sums; KEY=FILE signs them
#   make package-check   installs the .deb files in a bare Debian of its own, runs and purges them (needs root)
#   make package-check-arm64  the same for make archive-arm64, in a bare Debian of 64-bit Arm by qemu
#   make package-check-riscv64  the same for make archive-riscv64, in a bare Debian 13 of RISC-V
#   make container-check  buildah loads the container image, runs it and removes it (needs root and buildah)
#   make static-check    runs the static program where nothing else is: in an empty root, without locale (needs root)
#   make release-check   makes a release twice, in two folders from nothing, and compares all bytes (an hour)
KEY ?=
.PHONY: deb archive arm64 archive-arm64 archive-riscv64 wheel-arm64 release package-check static-check package-check-arm64 package-check-riscv64 container-check release-check

deb:
	@tools/deps install package
	@TARGETS="whit whit_static whit_shared whit_manuals" tools/build package
	@packaging/deb/make build-package build-package/packages

archive: static
	@packaging/archive build-static build-static/packages

arm64:
	@tools/deps check arm
	@tools/cross/static.sh build-static-aarch64/libraries aarch64-linux-gnu
	@TARGETS=whit tools/build static-aarch64

# $(1): the processor. The program was built; qemu runs it.
define archive_foreign
	@packaging/deb/make "$$(packaging/archive build-static-$(1) build-static-$(1)/packages qemu-$(1))" \
	    build-static-$(1)/packages
	@TARGETS="whit hub_serve tiny_model" tools/build release
	@tests/packaging/foreign.py qemu-$(1) build-static-$(1)/whit \
	    build/whit build/tests/hub_serve build/tests/tiny_model
endef

archive-arm64: arm64
	$(call archive_foreign,aarch64)

archive-riscv64: riscv64
	$(call archive_foreign,riscv64)

wheel-arm64:
	@tools/deps check arm
	@TARGETS=whit_shared tools/build aarch64
	@python3 bindings/python/make_wheel.py build-aarch64/libwhit.so -o build-aarch64

release: archive deb wheel
	@TARGETS=whit tools/build release
	@packaging/release build-release $(KEY)

package-check: deb
	@packaging/deb/check build-package/packages

package-check-arm64: archive-arm64
	@packaging/deb/check build-static-aarch64/packages

package-check-riscv64: archive-riscv64
	@packaging/deb/check build-static-riscv64/packages

container-check: static
	@tests/packaging/container.sh build-static/whit

static-check: static
	@TARGETS="hub_serve tiny_model" tools/build release
	@tests/packaging/static.sh build-static/whit build/tests/hub_serve build/tests/tiny_model

release-check:
	@tests/packaging/release_twice.sh
