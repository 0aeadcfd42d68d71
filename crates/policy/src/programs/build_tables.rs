//! Builders, package managers, test runners, linters, compilers: what goes beyond the name of each.

use super::options::{ANYTHING, LOOKS, Operands, Style, Table};
use crate::deed::Reach;

/// Subcommands of builders are operands; options may stand anywhere before `--`.
pub(super) const TABLES: [Table; 33] = [
    Table {
        names: "cargo,cross",
        flags: "-vqhV --all --all-targets --release --workspace --lib --bins --tests --examples --benches \
                --locked --offline --frozen --no-run --verbose --quiet --no-fail-fast --all-features \
                --no-default-features --version --help --check --fix --allow-dirty --no-deps --open --list",
        values: "-pjFZ --package --jobs --features --bin --test --example --bench --profile --target --color \
                --message-format --exclude",
        loads: "--config --lockfile-path --artifact-dir --out-dir --target-dir --root --registry --index",
        ..ANYTHING
    },
    Table {
        names: "npm,pnpm,yarn,bun,cnpm",
        loads: "--script-shell --node-options --userconfig --globalconfig --registry --init-module --shell \
                --shell-emulator --pack-destination --node-gyp --git --viewer --editor --cache --use-yarnrc --modules-dir \
                --global-dir --config --preload --define --plugin --https-proxy --proxy",
        dares: "--unsafe-perm",
        flags: "--prefer-offline --recursive",
        ..ANYTHING
    },
    Table {
        names: "deno",
        loads: "-c --config --import-map --preload --reload --env-file --cert --lock --node-modules-dir",
        dares: "-A --allow-all --allow-run --allow-write --allow-ffi --allow-env --allow-net --allow-read \
                --allow-sys --allow-import --unstable-ffi",
        ..ANYTHING
    },
    Table {
        names: "go",
        style: Style::Dash,
        loads: "-toolexec -exec -vettool -overlay -modfile -pkgdir -gccgoflags -fixtool",
        values: "-C -gcflags -asmflags -ldflags -tags -run -bench -count -timeout -p",
        writes: "-o -cpuprofile -memprofile -blockprofile -mutexprofile -trace -outputdir -coverprofile",
        ..ANYTHING
    },
    Table {
        names: "make,gmake,bmake",
        flags: "-bBdehikLmnpqrRsStvw --always-make --dry-run --just-print --keep-going --silent --quiet \
                --ignore-errors --question --touch --version --help --print-directory --no-print-directory \
                --no-builtin-rules --no-builtin-variables --stop --check-symlink-times --print-data-base",
        maybe: "-jlO --jobs --load-average --output-sync --debug --trace",
        values: "-oWC --old-file --assume-old --what-if --new-file --assume-new --directory",
        loads: "-fIE --file --makefile --include-dir --eval",
        ..Table { open: false, ..ANYTHING }
    },
    Table {
        names: "cmake",
        values: "-DGTASB --build --target --config --preset",
        flags: "-LNW --fresh --version --help",
        loads: "-PC --toolchain --install-prefix --prefix --graphviz -X",
        dares: "-E --install --find-package",
        ..ANYTHING
    },
    Table {
        names: "ninja,samu,meson,bazel,buck,scons,waf,tup,just,task,mage,rake,invoke,nox,ant,sbt,lein,mill,\
                xmake,premake,earthly,dagger,nx,turbo,lerna,rush,moon,pants,please,gulp,grunt",
        loads: "-f --justfile --taskfile --working-directory --override_repository --run_under --shell \
                --set --chdir --native-file --cross-file --rakefile --require --execute --build-file",
        ..ANYTHING
    },
    Table {
        names: "gradle,gradlew",
        style: Style::Dash,
        loads: "-I -b -c -g -init-script -build-file -settings-file -gradle-user-home -include-build \
                -system-prop",
        ..ANYTHING
    },
    Table {
        names: "mvn,mvnw,mvnd",
        style: Style::Dash,
        loads: "-f -s -gs -t -l -file -settings -global-settings -toolchains -log-file",
        ..ANYTHING
    },
    Table {
        names: "dotnet,msbuild,nuget",
        loads: "--property --source --configfile --additionalprobingpath --startup-hook -p",
        ..ANYTHING
    },
    Table {
        names: "pip,pip3,pipx,uv,poetry,pdm,hatch,pipenv,rye,conda-build,twine,tox,easy_install",
        loads: "-i --index-url --extra-index-url --find-links --trusted-host --target --prefix --root \
                --config-settings --global-option --build-option --install-option --proxy --cert \
                --client-cert --config-file --default-index --index --log --cache-dir",
        ..ANYTHING
    },
    Table {
        names: "pytest,py.test",
        loads: "-pco --rootdir --confcutdir --override-ini --config-file --basetemp --pdbcls --debug \
                --import-mode --cov-config",
        edits: "--junitxml --junit-xml --log-file --html --resultlog",
        flags: "-qvxslh --verbose --quiet --exitfirst --lf --ff --last-failed --failed-first --no-header \
                --collect-only --co --sw --stepwise --pdb --no-cov --nf --setup-show --strict-markers",
        values: "-kmnW --maxfail --tb --durations --ignore --deselect --color --timeout --cov --cov-report \
                --numprocesses --dist",
        maybe: "-r",
        ..ANYTHING
    },
    Table { names: "ruff", loads: "--config --output-file --cache-dir", edits: "-o", ..ANYTHING },
    Table {
        names: "mypy,pyright,pylint,flake8,bandit,black,isort,autopep8,yapf,pyupgrade,coverage,sphinx-build,\
                mkdocs",
        loads: "--config-file --config --load-plugins --init-hook --rcfile --python-executable \
                --custom-typeshed-dir --cache-dir --plugin --plugins --append-config --settings-path \
                --html-report --xml-report --junit-xml --output-file --pythonpath",
        ..ANYTHING
    },
    Table {
        names: "eslint,stylelint,tslint,standard,xo,biome,oxlint",
        loads: "-cfo --config --rulesdir --resolve-plugins-relative-to --parser --plugin --format \
                --output-file --cache-location --custom-formatter --custom-syntax --config-path",
        ..ANYTHING
    },
    Table {
        names: "prettier",
        loads: "--config --plugin --plugin-search-dir --config-path --find-config-path --cache-location",
        ..ANYTHING
    },
    Table {
        names: "tsc",
        writes: "--outDir --outFile --tsBuildInfoFile --declarationDir",
        loads: "--plugins --generateTrace --generateCpuProfile",
        ..ANYTHING
    },
    Table {
        names: "jest,vitest,mocha,ava,cypress,playwright,karma,nyc,c8,tap,jasmine",
        loads: "-cr --config --require --globalSetup --globalTeardown --setupFiles --setupFilesAfterEnv \
                --runner --testRunner --reporters --transform --resolver --environment --testEnvironment \
                --rootDir --loader --import --outputFile --prettierPath --filter --root --node-option \
                --opts --ui",
        values: "-t --testNamePattern",
        ..ANYTHING
    },
    Table {
        names: "webpack,vite,rollup,esbuild,parcel,swc,babel,next,nuxt,astro,svelte-kit,remix,tailwindcss,\
                postcss,sass,storybook,ng,vue-cli-service,react-scripts,turbopack,tsup,rspack",
        writes: "--outfile --outdir --output-path --out-file --out-dir",
        loads: "-c --config --plugin --require --plugins --presets --inject",
        ..ANYTHING
    },
    Table {
        names: "rustc,rustdoc,rustfmt,clippy-driver",
        values: "-CLl --codegen --extern --emit --crate-type --edition --crate-name --check-cfg --cfg",
        writes: "-o --out-dir",
        loads: "--sysroot --config-path --config --runtool --test-builder --html-in-header --theme -Z \
                --test-runtool",
        ..ANYTHING
    },
    Table {
        names: "gcc,g++,cc,c++,clang,clang++,tcc,icc,nvcc,zig,gfortran,ld,ld.lld,mold,gold,as,nasm,yasm",
        style: Style::Dash,
        loads: "-B -sysroot -specs -wrapper -fplugin -load -Xclang -plugin -config -ld-path",
        ..ANYTHING
    },
    Table {
        names: "javac,kotlinc,scalac,jar,javadoc",
        style: Style::Dash,
        values: "-cp -classpath -class-path -source -target -release",
        writes: "-d",
        loads: "-processor -processorpath -J -Xplugin -proc -processor-path",
        ..ANYTHING
    },
    Table {
        names: "terraform,tofu,terragrunt,pulumi,ansible,ansible-playbook,packer,vagrant,puppet,chef-client,\
                salt",
        style: Style::Dash,
        reads: "-var-file",
        writes: "-out",
        loads: "-chdir -plugin-dir -backend-config -state -auto-approve -from-module -i -inventory -e \
                -extra-vars -m -module-path -a",
        ..ANYTHING
    },
    Table {
        names: "kubectl,oc,k9s,helm,helmfile,kustomize,istioctl,argocd,flux,minikube,kind,k3d",
        reads: "-fk --filename --kustomize --values",
        loads: "-s --kubeconfig --server --token --as --context --cluster --user --post-renderer \
                --insecure-skip-tls-verify --raw --certificate-authority --repo --plugin",
        ..ANYTHING
    },
    Table {
        names: "npx,uvx,bunx,pnpx,dlx,yarnpkg,tldr,degit,create-react-app",
        style: Style::First,
        loads: "-cp --call --package --from --with --index-url --shell --node-options --script-shell \
                --registry --node-arg",
        ..ANYTHING
    },
    Table {
        names: "composer,bundle,bundler,gem,mix,rebar3,cabal,stack,opam,dune,dub,nimble,shards,pub,flutter,\
                swiftpm,xcodebuild,xcrun,pod,fastlane,carthage,rails,artisan,symfony,phpunit,rspec,rubocop,\
                phpstan,php-cs-fixer,psalm,pest,cucumber",
        loads: "-rcCIoid --require --config --working-dir --configuration --bootstrap --options --exec \
                --source --with-compiler --with-hc-pkg --plugin --init-directive --cache-dir --out",
        values: "-f --format",
        ..ANYTHING
    },
    Table {
        names: "protoc,buf,bindgen,cbindgen,flatc,swig,thrift,openapi-generator,graphql-codegen,sqlc,prisma,\
                drizzle-kit,typeorm,alembic,flyway,liquibase,diesel,sqlx,dbmate,migrate",
        loads: "--plugin --config --template --dependency_out --descriptor_set_out",
        ..ANYTHING
    },
    Table {
        names: "hadolint,shellcheck,yamllint,markdownlint,actionlint,typos,vale,codespell,cspell",
        loads: "--config --config-file -c -d",
        operands: Operands::Read,
        ..Table { reach: Reach::Anything, ..LOOKS }
    },
    Table {
        names: "golangci-lint,staticcheck,gofmt,goimports,gofumpt,govulncheck,gopls,dlv,air,ginkgo,\
                gotestsum,mockgen,wire",
        style: Style::Dash,
        loads: "-config -c -o -overlay -exec -toolexec -vettool -cpuprofile -out -raw-command \
                -post-run-command -rerun-fails-report",
        ..ANYTHING
    },
    Table {
        names: "clang-format,clang-tidy,cppcheck,include-what-you-use,gcov,lcov,gcovr",
        style: Style::Dash,
        loads: "-load -export-fixes -config-file -plugin -addon -rule-file -o -output-file",
        ..ANYTHING
    },
    Table {
        names: "strip,objcopy,install_name_tool,patchelf,upx,codesign,chrpath",
        operands: Operands::Write,
        edits: "-o --output --output-file",
        loads: "--plugin --add-needed --replace-needed --set-rpath --set-interpreter",
        ..ANYTHING
    },
    Table {
        names: "convert,magick,mogrify,identify,ffmpeg,ffprobe,sox,exiftool,pandoc,qpdf,pdftotext,\
                wkhtmltopdf,chromium,google-chrome,firefox,libreoffice,soffice,inkscape,dot,plantuml,mmdc,\
                asciidoctor",
        style: Style::Dash,
        loads: "-config -filter_script -filter --lua-filter --pdf-engine --extract-media --template -F -L \
                --headless --plugin --require -authenticate",
        ..ANYTHING
    },
    Table {
        names: "serve,http-server,live-server,uvicorn,gunicorn,flask,django-admin,celery,streamlit,jupyter,\
                ipython,nginx,caddy,apachectl,redis-server,postgres,pg_ctl,mysqld,mongod,rabbitmq-server",
        loads: "-cg --config --app-dir --pythonpath --chdir --reload-dir --settings --env-file --conf \
                --log-config --access-logfile",
        ..ANYTHING
    },
];
