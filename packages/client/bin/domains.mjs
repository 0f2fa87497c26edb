#!/usr/bin/env node
import '../dist/domains.js'
