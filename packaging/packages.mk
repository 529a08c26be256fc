# SPDX-License-Identifier: MIT
# Packages for people without a compiler; included by the Makefile.
#
#   make deb             build-package/packages/*.deb: whit, libwhit0, libwhit-dev (Debian, Ubuntu)
#   make archive         build-static/packages/whit-VERSION-linux-ARCHITECTURE.tar.gz: the static program, any Linux
#   make static-check    runs the static program where nothing else is: in an empty root, without locale (needs root)
#   make package-check   installs the .deb files in a bare Debian of its own, runs and purges them (needs root)
.PHONY: deb archive package-check static-check

deb:
	@tools/deps install package
	@TARGETS="whit whit_static whit_shared whit_manuals" tools/build package
	@packaging/deb/make build-package build-package/packages

archive: static
	@packaging/archive build-static build-static/packages

package-check: deb
	@packaging/deb/check build-package/packages

# Needs root, for roots of its own.
static-check: static
	@TARGETS="hub_serve tiny_model" tools/build release
	@tests/packaging/static.sh build-static/whit build/tests/hub_serve build/tests/tiny_model
