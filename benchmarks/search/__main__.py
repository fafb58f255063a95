from benchmarks.search.cli import main

raise SystemExit(main())
