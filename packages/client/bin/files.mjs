#!/usr/bin/env node
import '../dist/files.js'
